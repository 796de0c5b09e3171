{#- Data tests: each returns the rows that fail. -#}

{%- macro test_not_null(model, column) -%}
select * from {{ model }} where {{ name(column) }} is null
{%- endmacro -%}

{%- macro test_unique(model, column) -%}
select {{ name(column) }}, count(*) as times from {{ model }} where {{ name(column) }} is not null group by {{ name(column) }} having count(*) > 1
{%- endmacro -%}

{%- macro test_accepted_values(model, column, values) -%}
select {{ name(column) }}, count(*) as times from {{ model }}
where {{ name(column) }} is not null and cast({{ name(column) }} as string) not in ({{ values | map('sql_text') | join(', ') }})
group by {{ name(column) }}
{%- endmacro -%}

{%- macro test_relationships(model, column, to, field) -%}
select {{ name(column) }}, count(*) as times from {{ model }} as child
where {{ name(column) }} is not null
  and not exists (select 1 from {{ ref(to) }} as parent where parent.{{ name(field) }} = child.{{ name(column) }})
group by {{ name(column) }}
{%- endmacro -%}

{%- macro test_expression_is_true(model, expression) -%}
select * from {{ model }} where not coalesce({{ expression }}, false)
{%- endmacro -%}

{#- Messages read = messages landed, file by file: `<source>_read_again` has the messages of the files that were read, counted anew,
    `<source>_gone` the files that are not there any more. -#}
{%- macro test_conserved(source) -%}
select
  coalesce(again.file, landed.file) as file,
  coalesce(messages_read, 0) as messages_read,
  coalesce(messages_landed, 0) as messages_landed
from (select file, sum(messages) as messages_read from {{ name(source.name ~ '_read_again') }} group by file) as again
full join (select origin.file as file, count_if(seq.row = 0) as messages_landed from {{ name(source.model) }} group by origin.file) as landed
  on again.file = landed.file
where coalesce(messages_read, 0) <> coalesce(messages_landed, 0)
  and coalesce(again.file, landed.file) not in (select value from {{ name(source.name ~ '_gone') }})
{%- endmacro -%}
