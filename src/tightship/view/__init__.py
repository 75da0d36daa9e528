"""Pictures, tables and reports of plain data; nothing below knows how to draw itself."""
