"""Tests of the course: its frame, solutions, and typical wrong answers."""
