"""Live views of shareq in a notebook. They read snapshots of the journal, nothing else, and change no record."""

from shareq_widgets.partition_strip import PartitionStrip, strip

__all__ = ["PartitionStrip", "strip"]
