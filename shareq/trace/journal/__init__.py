"""The journal: entries, their index, and their formats as JSON Lines, Parquet and text."""

from shareq.trace.journal.entry_log import Entry
from shareq.trace.journal.journal import Journal, journal_of
from shareq.trace.journal.journal_file import JournalFileError
from shareq.trace.journal.subject import Subject

__all__ = ["Entry", "Journal", "JournalFileError", "Subject", "journal_of"]
