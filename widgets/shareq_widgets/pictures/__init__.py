"""The pictures of a share group. Each module has `content`, the data at a moment, and `draw`, its drawing."""
