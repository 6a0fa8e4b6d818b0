"""What every picture shares: axes, labels, captions, panels, pages and sheets."""
