"""Found by Spark, which looks for modules of this kind of name: the format ``skylog``."""

from skylog.spark.source import SkylogSource as DefaultSource

__all__ = ["DefaultSource"]
