"""What pictures are made from: cells of rows, their settings, names, looks, scores and crossings."""
