{#- SQL functions: how they are made, in a session, in a catalog, in files that people run. -#}

{%- macro temporary_function(function) -%} create temporary function {{ function.text }} {%- endmacro -%}
{%- macro temporary_function_dropped(function) -%} drop temporary function if exists {{ name(function.name) }} {%- endmacro -%}

{#- In the catalog's schema, which is in use. -#}
{%- macro catalog_function(function) -%} create or replace function {{ function.text }} {%- endmacro -%}

{#- All functions of a project's models, and those in Python that they or the models call. -#}
{%- macro functions_file(functions, python) -%}
-- The SQL functions that the models of this project call, each before those that call it.
-- Settings that they rely on: {% for key, value in sql_settings.items() %}{{ key }} = {{ value }}{{ ',\n--   ' if not loop.last }}{% endfor %}
{{- '\n' ~ in_python(python) }}
{%- for function in functions %}
{{ function_to_run(function) }}
{%- endfor %}
{%- endmacro -%}

{%- macro in_python(python) -%}
{%- for function in python %}
{{- '-- Functions in Python that these or the models call:\n' if loop.first -}}
--   {{ function.name }}({{ function.arguments }}) returns {{ function.returns }}
--     {{ function.comment }}
--     in {{ function.module }}
{% endfor %}
{%- endmacro -%}

{%- macro function_to_run(function) -%}
create or replace temporary function {{ function.text }};
{% endmacro -%}

{#- What functions make of the arguments in views that were made for it, and what is expected, as JSON. -#}
{%- macro function_tests(tests) -%}
{%- for test in tests %}
select
  {{ text(test.function.name) }} as function,
  number,
  {{ as_json(test.function.name ~ '(' ~ test.function.arguments | map(attribute='name') | map('name') | join(', ') ~ ')') }} as got,
  {{ as_json(name(test.expected)) }} as expected
from {{ name(test.view) }}
{{- '\nunion all' if not loop.last }}
{%- endfor %}
{%- endmacro -%}

{%- macro as_json(value) -%} to_json(named_struct('value', {{ value }}), map('ignoreNullFields', 'false')) {%- endmacro -%}

{#- A model with all that its SQL needs to mean what it says. -#}
{%- macro runnable(model, functions, python, new_rows, sql) -%}
{%- for key, value in sql_settings.items() -%}
set {{ key }} = {{ value }};
{% endfor %}
{%- if python %}
-- Calls functions in Python: {{ python | map(attribute='name') | join(', ') }}.
-- A session of pyspark has them after these two lines of Python, in the folder of the project:
--   from runner.notebook import register
--   register(spark, {{ model | tojson }})
{% endif %}
{%- for function in functions %}
{{ function_to_run(function) }}
{%- endfor %}
{%- for view, read in new_rows.items() %}
-- A run shows here the rows that the table has not read yet.
{{ temporary_view(view, all_rows(name(read))) }};
{%- endfor %}
{{ sql }}
{%- endmacro -%}
