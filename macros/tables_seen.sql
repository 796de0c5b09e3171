{#- The tables of which rows tell that some batches have landed, each with the shapes of its images, the newest last. Of a table with very many shapes, whose rows are
    documents, these are the newest ones. Rows of statements are those of a table without a name. -#}
{%- macro tables_landed(changelog, since, until, most=1000) -%}
with landed as (
  select
    if(kind = 'row', {{ table_of_row() }}, cast(array() as array<string>)) as names, batch, struct(batch, seq) as place, map_keys(key) as key,
    meta['rowid'] is null as is_without_row_id, coalesce(op = 'update' and after_image in ('partial', 'key', 'patch'), false) as is_partial,
    coalesce(map_keys(coalesce(after, before)), cast(array() as array<string>)) as columns, types,
    types is not null and coalesce(after_image = 'full' or op = 'delete' and before_image = 'full', false) as is_whole
  from {{ name(changelog) }}
  where kind in ('row', 'ddl') and batch > {{ since }} and batch <= {{ until }}
    and not coalesce(op = 'update' and after_image = 'none', false)
),

shapes as (
  select
    names, key, columns, transform(columns, c -> types[c]) as types, is_whole, max(place) as newest, max(batch) as batch,
    count(*) as changes, count_if(is_without_row_id) as without_row_id, count_if(is_partial) as partial
  from landed
  group by names, key, columns, transform(columns, c -> types[c]), is_whole
)

select
  names, max(batch) as batch, sum(changes) as changes, sum(if(key is null, changes, 0)) as without_key, sum(partial) as partial, sum(without_row_id) as without_row_id,
  transform(
    array_sort(collect_list(struct(newest, key, columns, types, is_whole)) filter (where nth <= {{ most }})),
    s -> struct(s.key, s.columns, s.types, s.is_whole)) as shapes
from (select *, row_number() over (partition by names order by newest desc) as nth from shapes)
group by names
order by names
{%- endmacro -%}

{%- macro share_looked_at(of) -%} when names = array({{ of[0] | map('sql_text') | join(', ') }}) then {{ of[1] }} {%- endmacro -%}

{#- How many values of columns do not fit the types of SQL, and how many digits they have, of these tables: of each, one of so many changes is looked at. -#}
{%- macro values_landed(changelog, since, until, tried, tables) -%}
select
  names, column,
  {%- for type in tried %}
  count_if({{ typed('value', type) }} is null) as unfit_{{ type }},
  {%- endfor %}
  count_if(value not rlike '^[+-]?[0-9]+([.][0-9]*)?$') as no_numbers,
  max(length(regexp_extract(value, '^[+-]?0*([0-9]*)', 1))) as integer_digits,
  max(length(regexp_extract(value, '[.]([0-9]*?)0*$', 1))) as fraction_digits
from (
  select names, explode(map_filter(coalesce(after, before), (c, v) -> v is not null)) as (column, value)
  from (select *, {{ table_of_row() }} as names from {{ name(changelog) }})
  where kind = 'row' and batch > {{ since }} and batch <= {{ until }}
    and pmod(xxhash64(seq), case {{ tables | each('share_looked_at') | join(' ') }} end) = 0
)
group by names, column
{%- endmacro -%}

{#- When the newest change of each table was made, and the newest row of a load, among the changes up to a batch. -#}
{%- macro newest_of_tables(changelog, until) -%}
select {{ table_of_row() }} as names, max({{ known_time() }}) as newest, max({{ known_time() }}) filter (where op = 'snapshot') as loaded
from {{ name(changelog) }}
where kind = 'row' and batch <= {{ until }}
group by all
{%- endmacro -%}
