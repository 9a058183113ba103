"""The coordinators: of groups (`group`) and of share-partition state (`share`), on one runtime."""
