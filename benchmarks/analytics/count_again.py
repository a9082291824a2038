"""Count all records of the topics once into empty tables, and exit; the settings are the job's."""

from analytics_spark.job.session import open_session
from analytics_spark.settings import JobSettings
from verification.differential.history_trial import count_all


def main() -> None:
    settings = JobSettings()
    spark = open_session(settings)
    try:
        count_all(spark, settings)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
