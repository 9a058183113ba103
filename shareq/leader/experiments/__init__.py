"""The experiments of a share-partition: windows that keep AVAILABLE records back. Rules: BEHAVIOUR.md."""
