"""Commands for operators: rebuild, rescale, export, and Java's AOT cache.

In: arguments of the command line (`commands`) and the settings of the processes.
Out: another generation of the tables (`reprocess`), state in another number of shuffle partitions
(`rescale`), Parquet files (`export` of cells, `record_files` of records), a cache that starts Spark
sooner (`aot_cache`).
Guarantees, with the tests that show them:
- a rebuild has an equal content hash; a switch and a roll back lose nothing and count nothing
  twice: integration/test_reprocess.py
- a rescale is exact, and refused while the job runs: integration/test_rescale.py
- a file of the exports is complete or absent: integration/test_export.py,
  integration/test_record_files.py
- a command that fails prints one line, and can be repeated
Read first: reprocess.py; then generations_compared.py, what it reports.
"""
