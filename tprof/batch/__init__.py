"""Many recordings, each on its own, into one Parquet data set and one report; in processes here or on a cluster."""

from tprof.batch import compare
from tprof.batch.folder import Folder, is_batch
from tprof.batch.report import report, saved

__all__ = ["Folder", "compare", "is_batch", "report", "saved"]
