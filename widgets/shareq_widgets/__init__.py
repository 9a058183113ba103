"""Live views of shareq in a notebook. They only read snapshots of the journal, and change no records."""

from shareq_widgets.partition_strip import PartitionStrip, strip

__all__ = ["PartitionStrip", "strip"]
