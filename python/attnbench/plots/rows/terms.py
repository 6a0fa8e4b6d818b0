"""What rows call things, for code that draws nothing: exact attention, and the metrics of scores of which less is better."""

EXACT = "full"
BITS = "bits_per_token"
ERRORS = ("mean_squared_error", BITS)  # less is better, and 1 is no limit


def is_error(metric: str) -> bool:
    return metric in ERRORS
