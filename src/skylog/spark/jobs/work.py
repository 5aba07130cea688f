"""Runs tasks of a job on the executors, with a progress bar.

A job's results are small: counts and findings, never records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Final, TypeVar

from pyspark import SparkContext, inheritable_thread_target
from pyspark.sql import SparkSession

from skylog.kernel.progress import Progress

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")
_LOOK_SECONDS: Final = 0.2


def run_tasks(
    spark: SparkSession,
    label: str,
    tasks: Sequence[TaskT],
    work: Callable[[TaskT], ResultT],
) -> list[ResultT]:
    """The results in the order of the tasks. If interrupted, running tasks are cancelled."""
    if not tasks:
        return []
    spread = spark.sparkContext.parallelize(tasks, len(tasks)).map(work)
    return with_progress(spark, label, len(tasks), spread.collect)


def reduce_tasks(
    spark: SparkSession,
    label: str,
    tasks: Sequence[TaskT],
    work: Callable[[TaskT], ResultT],
    merge: Callable[[ResultT, ResultT], ResultT],
) -> ResultT | None:
    """All results as one, merged on the executors as far as possible; None without tasks."""
    if not tasks:
        return None
    spread = spark.sparkContext.parallelize(tasks, len(tasks)).map(work)
    return with_progress(spark, label, len(tasks), lambda: spread.treeReduce(merge))


def with_progress(
    spark: SparkSession, label: str, total: int, action: Callable[[], ResultT]
) -> ResultT:
    """Do something that runs about ``total`` Spark tasks."""
    context = spark.sparkContext
    group = f"skylog-{label}"
    context.setJobGroup(group, label, interruptOnCancel=True)
    with ThreadPoolExecutor(1) as pool, Progress(label, total) as progress:
        # Job groups belong to threads; the thread that waits for Spark must have ours.
        running: Future[ResultT] = pool.submit(inheritable_thread_target(spark)(action))
        try:
            while True:
                try:
                    return running.result(_LOOK_SECONDS)
                except NotYet:
                    progress.advance(_completed(context, group))
        except BaseException:
            context.cancelJobGroup(group)
            raise


def _completed(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    done = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            done += stage.numCompletedTasks if stage is not None else 0
    return done
