"""Views of a journal and its analysis: text, HTML, snapshots for widgets, and plots."""
