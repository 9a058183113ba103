"""The exercises of each lesson, with their hints and judges. A module is loaded when its lesson is asked for."""
