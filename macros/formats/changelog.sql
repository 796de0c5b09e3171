{#- From messages to rows of the changelog: one SELECT for each source, in named steps, in the order the data takes (runner/compile/query.py). -#}

{#- The settings that the compiled SQL needs to mean what it says. -#}
{%- macro changelog(source, settings, steps, columns) -%}
-- {{ source }}_to_changelog: the messages of source {{ source }}, as rows of the changelog
{% for setting, value in settings.items() -%}
-- {{ '%-11s' | format(setting) }}{{ value }}
{% endfor -%}
with
{%- for step in steps %}

-- {{ step.comment }}
{{ step.name }} as (
  select {{ step.columns | in_columns(4) }}
  from {{ step.reads }}
){{ ',' if not loop.last }}
{%- endfor %}

-- The columns of the contract, in its order.
select
  {{ columns | in_lines(2) }}
from {{ (steps | last).name }}
{%- endmacro -%}

{#- Why a message cannot be used. -#}
{%- macro no_op(by) -%} if({{ by }} is null, 'no-op', 'unknown-op') {%- endmacro -%}
{%- macro is_dead_letter() -%} verdict like 'dead\\_letter %' {%- endmacro -%}
{%- macro second_word(text) -%} substring_index(substring_index({{ text }}, ' ', 2), ' ', -1) {%- endmacro -%}
{%- macro is_no_row() -%} verdict not like 'row %' {%- endmacro -%}

{%- macro kind() -%} if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') {%- endmacro -%}
{%- macro if_refused(raw) -%} if(reason is null, null, {{ raw }}) {%- endmacro -%}
{%- macro first_row(number) -%} coalesce({{ number }}, 0) {%- endmacro -%}

{#- The order of a row; loaded rows may be late. -#}
{%- macro seq(generation, phase, position) -%}
named_struct('generation', {{ generation }}, 'phase', {{ phase }},
    'position', {{ position }}, 'arrival', arrival, 'row', row_index)
{%- endmacro -%}
{%- macro late_phase() -%} if(op = 'snapshot', 0, 1) {%- endmacro -%}

{%- macro detail_of_record() -%} if(kind = 'dead_letter', error_detail, null) {%- endmacro -%}

{#- Where the texts of all messages are kept: that of a message with rows goes with the first of them. -#}
{%- macro raw_without_rows(raw) -%} if(reason is null and verdict like 'row %', null, {{ raw }}) {%- endmacro -%}
{%- macro text_of_first() -%} if(nth = 0, message_text, null) {%- endmacro -%}
{%- macro raw_of_lists() -%} coalesce(raw, first_text) {%- endmacro -%}
{%- macro raw_of_parts() -%} coalesce(message_text, if(reason is null, null, raw)) {%- endmacro -%}
{%- macro text_of_whole() -%} if(nth = 0, raw, null) {%- endmacro -%}

{#- A message that is no text, in base64. -#}
{%- macro raw_bytes() -%} base64(raw) {%- endmacro -%}
{%- macro raw_any() -%} if(is_valid_utf8(raw), raw, base64(cast(raw as binary))) {%- endmacro -%}
{%- macro raw_none() -%} cast(null as string) {%- endmacro -%}
{%- macro raw_text() -%} if(reason = 'not-utf8', base64(cast(raw as binary)), raw) {%- endmacro -%}
