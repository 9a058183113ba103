"""Three typical wrong answers of each exercise, with the words that the check must answer."""
