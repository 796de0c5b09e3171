"""What people who know dbt look for and will not find here, and what to do instead."""

from __future__ import annotations

HISTORY = "the changelog has the history of each row, and a mirror with history: true makes a table of it"
GROUPS = "give the models a tag, and select them by it"
METRICS = "define metrics in the tool that shows them"
VERSIONS = "give each version a model of its own"
NEW_ROWS = "an incremental model takes what is new with new_rows('changelog')"
OF_MATERIALIZATIONS = "only macros that make tables need it, and these are the runner's"
NO_PACKAGES = "there are no packages: copy the macros that you need into macros/"
TARGET = "targets in project.yml say where tables are; all of one run are in one place"

# Commands, and words behind them.
COMMANDS = {
    "list": "runner ls",
    "deps": NO_PACKAGES,
    "snapshot": HISTORY,
    "clone": "--defer --state reads the tables of another target without copying them",
    "run-operation": "a macro gives text and runs nothing: a pre_hook or post_hook runs statements",
    "serve": "open target/docs/index.html: it needs no server",
    "snapshot-freshness": "runner source freshness",
}

# Commands that stand alone in dbt, and here have arguments.
ALONE = {"parse": "runner parse FILE shows what messages become; runner check reads the project"}

# Flags of commands. What is said of `--x` holds for `--no-x`.
READ_WHOLE = "each command reads the whole project: 300 models take half a second"
ONE_LOG = "target/logs has what Spark says; --log-format json writes each event as a line"
COLORS = "--no-color, or NO_COLOR=1"
WARNINGS = "a warning stops nothing: severity: error in the config of a test makes it a failure"
ONE_PAGE = "target/docs/index.html is one file, which needs no server"
FLAGS = {
    **dict.fromkeys(("-m", "--model", "--models"), "-s, --select"),
    **dict.fromkeys(("--profile", "--profiles-dir", "--skip-profile-setup", "--connection", "--config-dir"), TARGET),
    **dict.fromkeys(
        ("--resource-type", "--resource-types", "--exclude-resource-type", "--exclude-resource-types"),
        "-s resource_type:model, --exclude resource_type:test",
    ),
    **dict.fromkeys(("--event-time-start", "--event-time-end"), NEW_ROWS),
    **dict.fromkeys(("--partial-parse", "--partial-parse-file-path", "--partial-parse-file-diff"), READ_WHOLE),
    **dict.fromkeys(("--static-parser", "--use-experimental-parser", "--use-fast-test-edges"), READ_WHOLE),
    **dict.fromkeys(
        ("--cache-selected-only", "--populate-cache", "--log-cache-events"), "nothing is cached between runs"
    ),
    **dict.fromkeys(("--log-level", "--log-level-file"), "-d prints more, -q less"),
    **dict.fromkeys(("--log-path", "--log-format-file", "--log-file-max-bytes"), ONE_LOG),
    **dict.fromkeys(("--use-colors", "--use-colors-file"), COLORS),
    **dict.fromkeys(("--warn-error", "--warn-error-options"), WARNINGS),
    **dict.fromkeys(("--defer-state", "--deprecated-state"), "--state"),
    "--deprecated-defer": "--defer",
    **dict.fromkeys(
        ("--favor-state", "--deprecated-favor-state"), "--defer reads what is not in this target where --state has it"
    ),
    **dict.fromkeys(("--print", "--deprecated-print"), "runner compile shows what a template makes"),
    **dict.fromkeys(("--static", "--browser", "--host", "--port"), ONE_PAGE),
    **dict.fromkeys(("--compile", "--empty-catalog"), "--no-tables writes the page without asking tables"),
    **dict.fromkeys(("--add-package", "--source", "--lock", "--upgrade"), NO_PACKAGES),
    **dict.fromkeys(("--export-saved-queries", "--include-saved-query"), METRICS),
    **dict.fromkeys(("--send-anonymous-usage-stats", "--upload-to-artifacts-ingest-api"), "nothing is sent to anybody"),
    "--single-threaded": "--threads 1",
    "--store-failures": "of a test: config: {store_failures: true}",
    "--indirect-selection": "the tests of what is selected run; --exclude leaves some out",
    "--sample": "--empty builds all without rows",
    "--introspect": "templates run no queries",
    "--inject-ephemeral-ctes": "compiled SQL names ephemeral models as it names all others",
    "--inline-direct": "--inline",
    "--output-keys": "--output json has all keys",
    "--show": "runner show -s SEED",
    "--args": "a macro gives text and runs nothing",
    "--macro-debugging": "runner compile shows what a template makes",
    "--printer-width": "the terminal's width, or COLUMNS",
    "--record-timing-info": "target/run_results.json has the time of each node",
    "-r": "target/run_results.json has the time of each node",
    "--show-all-deprecations": "all mistakes and warnings are always shown",
    "--show-resource-report": "each result has the time that it took",
    "--version-check": "the version of the runner is that of the environment",
    "--write-json": "artifacts are always written",
    "--clean-project-files-only": "runner clean removes only what the runner has written to target/",
    "-o": "target/sources.json is where source freshness writes; --output NAME of others is how they print",
    "-V": "runner --version",
    "--version": "runner --version",
    "-v": "runner --version",
}

# Methods of selectors.
METHODS = {
    "fqn": "without the method: staging.orders",
    "package": "there are no packages",
    "group": GROUPS,
    "access": GROUPS,
    "metric": METRICS,
    "saved_query": METRICS,
    "semantic_model": METRICS,
    "test_name": "the name of the test: not_null_*",
    "test_type": "runner test --data, runner test --unit",
    "unit_test": "its name, or resource_type:unit_test",
    "version": VERSIONS,
}

# Keys of property files.
KEYS = {
    "snapshots": HISTORY,
    "groups": GROUPS,
    "semantic_models": METRICS,
    "metrics": METRICS,
    "saved_queries": METRICS,
    "analyses": "runner show --inline SQL runs a query once; models/ has those that stay",
    "macros": "a comment {# #} before a macro describes it",
    "versions": VERSIONS,
    "latest_version": VERSIONS,
    "access": GROUPS,
    "group": GROUPS,
    "deprecation_date": "say it in the description",
    "time_spine": METRICS,
    "granularity": METRICS,
    "constraints": "constraints of columns: [{type: not_null}]; data tests check what else is to be so",
    "external": "a source of messages names its files under files",
    "loader": "say it in the description",
}

# Keys of dbt_project.yml.
FOLDERS = "models are in models/, seeds in seeds/, tests in tests/, macros in macros/"
HOOKS = "a pre_hook or post_hook of a model"
OF_TESTS = "each test says it itself: config: {severity: warn}"
PROJECT_KEYS = {
    **dict.fromkeys(("version", "config-version", "require-dbt-version"), "leave it out"),
    **dict.fromkeys(("model-paths", "seed-paths", "test-paths", "macro-paths", "docs-paths", "asset-paths"), FOLDERS),
    **dict.fromkeys(("snapshot-paths", "snapshots"), HISTORY),
    **dict.fromkeys(("analysis-paths", "analyses"), "runner show --inline SQL runs a query once"),
    **dict.fromkeys(("on-run-start", "on-run-end"), HOOKS),
    **dict.fromkeys(("tests", "data_tests", "unit_tests"), OF_TESTS),
    **dict.fromkeys(("profile", "profiles", "quoting", "packages-install-path", "dependencies"), TARGET),
    **dict.fromkeys(("metrics", "semantic-models", "saved-queries"), METRICS),
    "clean-targets": "runner clean removes target/",
    "target-path": "--target-path, or RUNNER_TARGET_PATH",
    "log-path": "target/logs has what Spark says",
    "packages": NO_PACKAGES,
    "dispatch": NO_PACKAGES,
    "query-comment": "compiled SQL is what Spark gets",
    "exposures": "exposures belong into a YAML file in models/",
    "groups": GROUPS,
    "flags": "var('...') with --vars",
    "restrict-access": GROUPS,
}

# Settings of models.
SETTINGS = {
    "schema": TARGET,
    "database": TARGET,
    "catalog": TARGET,
    "location_root": TARGET,
    "file_format": "storage of the target says it, for all tables of a run",
    "group": GROUPS,
    "access": GROUPS,
    "grants": "the catalog grants; a post_hook can run: grant select on table {{ this }} to ...",
    "quoting": "all names are quoted",
    "packages": "there are no models in Python",
    "submission_method": "there are no models in Python",
    "full_refresh": "--full-refresh builds the selected models again; leave a model out with --exclude",
    "event_time": NEW_ROWS,
    "batch_size": NEW_ROWS,
    "begin": NEW_ROWS,
    "lookback": NEW_ROWS,
    "concurrent_batches": NEW_ROWS,
    "on_configuration_change": "there are no materialized views",
    "sql_header": "spark under a target has settings; a pre_hook runs SQL before the model",
    "docs": "leave it out: the page shows all models",
    "tblproperties": "table_properties",
    "liquid_clustered_by": "cluster_by",
    "clustered_by": "partition_by: ['bucket(16, id)'], where tables are in iceberg",
    "buckets": "partition_by: ['bucket(16, id)'], where tables are in iceberg",
    "partitions": "insert_overwrite replaces the partitions of the new rows",
    "incremental_predicates": "say in the query which rows are new",
    "merge_update_columns": "select all columns: new rows replace rows with the same key",
    "merge_exclude_columns": "select all columns: new rows replace rows with the same key",
    "freshness": "freshness belongs to sources",
    "strategy": HISTORY,
    "check_cols": HISTORY,
    "updated_at": HISTORY,
    "target_schema": HISTORY,
    "target_database": HISTORY,
    "dbt_valid_to_current": HISTORY,
    "snapshot_meta_column_names": HISTORY,
    "store_failures_as": "store_failures: true keeps them in a table",
    "loaded_at_query": "loaded_at_field takes any expression",
}

MATERIALIZATIONS = {
    "materialized_view": "materialized: incremental",
    "snapshot": HISTORY,
}

# Names in templates.
NAMES = {
    "adapter": "models are SELECTs, and the storage is known to the runner alone",
    "api": "call ref, source, this and functions of Spark",
    "builtins": "ref and source cannot be replaced",
    "dbt": "Spark is the only engine: write its function, such as date_trunc",
    "dbt_utils": "there are no packages: copy the macro into macros/",
    "dbt_version": "runner --version",
    "execute": "templates run no queries: leave the condition out",
    "exceptions": "raise_error('...') of Spark fails while the query runs",
    "flags": "var('...') with --vars",
    "graph": "target/manifest.json has the graph",
    "invocation_id": "run_id is a column of every changelog",
    "load_result": "templates run no queries",
    "local_md5": "md5('...') of Spark",
    "log": "runner compile shows what a template makes",
    "model": "this is the model's name",
    "modules": "functions of Spark compute times and patterns",
    "print": "runner compile shows what a template makes",
    "project_name": "var('...')",
    "return": "a macro gives the text that it prints",
    "run_query": "templates run no queries: join or select what they would read",
    "run_started_at": "current_timestamp() of Spark",
    "schema": "target.catalog.schema",
    "selected_resources": "target/run_results.json has what ran",
    "statement": "templates run no queries: join or select what they would read",
    "fromjson": "write the value as {% set x = {...} %}",
    "fromyaml": "write the value as {% set x = {...} %}",
    "tojson": "the filter: {{ value | tojson }}",
    "toyaml": "the filter: {{ value | tojson }}",
    "zip": "loop.index0 counts along two lists",
    "zip_strict": "loop.index0 counts along two lists",
    "set": "the filter: {{ values | unique | list }}",
    "set_strict": "the filter: {{ values | unique | list }}",
    "metric": METRICS,
    "database": "target.catalog.name",
    "thread_id": "target/logs has what ran when",
    "invocation_args_dict": "var('...') with --vars",
    "dbt_metadata_envs": "env_var('NAME', public=true)",
    "env": "env_var('NAME')",
    "adapter_macro": "models are SELECTs, and the storage is known to the runner alone",
    "submit_python_job": "there are no models in Python",
    **dict.fromkeys(
        ("_sql_results", "context_macro_stack", "defer_relation", "diff_of_two_dicts", "load_agate_table", "render"),
        OF_MATERIALIZATIONS,
    ),
    **dict.fromkeys(
        ("column", "compiled_code", "sql", "sql_now", "pre_hooks", "post_hooks", "store_result", "store_raw_result"),
        OF_MATERIALIZATIONS,
    ),
    **dict.fromkeys(("try_or_compiler_error", "validation", "write"), OF_MATERIALIZATIONS),
}

# Attributes of names in templates.
RELATIONS = "ref, source and this are names in SQL, as texts"
OWN_SETTINGS = "what several places need is a variable: var('...')"
ATTRIBUTES = {
    ".schema": f"the schema of the target is target.catalog.schema; {RELATIONS}",
    ".database": f"the catalog of the target is target.catalog.name; {RELATIONS}",
    **dict.fromkeys((".identifier", ".name", ".table", ".type", ".is_view", ".is_table", ".render"), RELATIONS),
    **dict.fromkeys((".get", ".require", ".persist_relation_docs", ".set"), OWN_SETTINGS),
    **dict.fromkeys((".profile_name", ".threads", ".user", ".warehouse", ".dbname"), "runner debug shows the target"),
}

# Statements in templates.
STATEMENTS = {
    "snapshot": HISTORY,
    "materialization": "views, tables, incremental models and mirrors are what there is",
}
