{#- Mirrors: a table as it is in its database, made of its changes. -#}

{#- With a `share` less than 1 only some of all keys. -#}
{%- macro mirror_state(mirror, share=1) -%}
-- {{ mirror.name }}: {{ tables_of(mirror) }}, each row as it is now
{{ where_begins(mirror) }}{{ known_of(mirror, share) }},

-- The rows that are there, typed.
typed as (
  select newest, in_parts, told, {{ typed_row(mirror, 'row_key') }} as row
  from known
  where not newest.removes
)

select
  {{ shown_state(mirror) }}
from typed
{{- where_ends(mirror) }}
{%- endmacro -%}

{#- With `found`, the findings of new changes, without what none of them needs: until a change tells parts of a row, the newest one tells all of it. -#}
{%- macro known_of(mirror, share=1, found={}) -%}
with
{{ changes_of(mirror, share, found.never_emptied if found else false) }},

-- What is known of each row that was ever there.
known as (
  select
    row_key,
    max_by(struct(place, source, changed_at, removes), place) as newest,
    {%- if found and not found.has_parts %}
    max_by(told, place) as told,
    false as in_parts
    {%- else %}
    max(place) filter (where is_whole) as newest_whole,
    min(place) filter (where not is_whole) as first_part,
    coalesce(
      max(place) filter (where not is_whole) > max(place) filter (where is_whole),
      max(place) filter (where not is_whole) is not null) as in_parts,
    known_columns(
      max_by(told, place) filter (where is_whole),
      max(place) filter (where is_whole),
      collect_list(struct(place, told)) filter (where not is_whole)) as told
    {%- endif %}
  from changes
  {%- if mirror.on_truncate == 'delete' %}
  where size(emptied) = 0
  {%- endif %}
  group by row_key
)
{%- endmacro -%}

{%- macro shown_state(mirror, over='') -%}
{{ columns_shown(mirror, ['newest.changed_at as _changed_at', 'newest.place.seq as _seq', 'newest.source as _source', 'in_parts as _in_parts', unfit(mirror, over) ~ ' as _unfit']) }}
{%- endmacro -%}

{#- What must be looked at before a mirror is built: one row with the columns that it does not have, whatever the case of their letters, how many changes do
    not tell the key, and whether some tell only parts of a row. Of new changes, which `table` is to take in, also whether the table was emptied, which matters
    only to the rows that it has, or never was, how many changes tell the key, and the first and the last value of each of its columns. -#}
{%- macro mirror_findings(mirror, table='') -%}
{%- set known = (mirror.columns | map(attribute='name') | list) + (mirror.left_out | list) -%}
with
{{ told_of(mirror) }},

{{ keyed_of(mirror) }}
select
  filter(
    columns,
    (c, i) -> not array_contains(array({{ known | map('lower') | map('sql_text') | join(', ') }}), lower(c))
      and not exists(slice(columns, 1, i), d -> lower(d) = lower(c))) as unknown_columns,
  without_key,
  tells_parts
  {%- if table %},
  {{ is_emptied(mirror, table) if mirror.on_truncate == 'delete' else 'false' }} as is_emptied,
  {{ was_never_emptied(mirror) }} as never_emptied,
  with_key
  {%- for column in mirror.key %},
  cast(first_{{ loop.index0 }} as string) as first_{{ loop.index0 }},
  cast(last_{{ loop.index0 }} as string) as last_{{ loop.index0 }}
  {%- endfor %}
  {%- endif %}
from (
  select
    array_sort(array_distinct(flatten(collect_set(map_keys(coalesce(after, before)))))) as columns,
    {% if mirror.key %}count_if(not ({{ tells_key(mirror) }})){% else %}0{% endif %} as without_key,
    coalesce(bool_or(not ({{ tells_whole_row() }})), false) as tells_parts
    {%- if table %},
    count_if({{ tells_key(mirror) }} or {{ tells_key(mirror, 'key_before') }}) as with_key
    {%- for column in mirror.key %},
    least(min(key_before.{{ name(column) }}), min(key_after.{{ name(column) }})) as first_{{ loop.index0 }},
    greatest(max(key_before.{{ name(column) }}), max(key_after.{{ name(column) }})) as last_{{ loop.index0 }}
    {%- endfor %}
    {%- endif %}
  from keyed
)
{%- endmacro -%}

{%- macro is_emptied(mirror, table) -%}
(select count(*) from ({{ times_emptied(mirror, 'new') }}
  )) > 0
  {%- if mirror.tables | selectattr('source.generation') | list %} or coalesce(
    (select max(struct(rank, seq.generation)) from sent where op = 'snapshot' and seq.generation > 0)
      > (select min(struct({{ rank_of(mirror, '_source') }} as rank, _seq.generation)) from {{ table }}), false)
  {%- endif -%}
{%- endmacro -%}

{#- Of a table that is loaded anew nobody asks: each load ends what was before it. -#}
{%- macro was_never_emptied(mirror) -%}
{%- if mirror.on_truncate != 'delete' or mirror.tables | selectattr('source.generation') | list -%} false
{%- else -%}
(select count(*) from ({{ times_emptied(mirror, 'all') }}
  )) = 0
{%- endif -%}
{%- endmacro -%}

{#- When the table was emptied by a statement: among `all` changes, or only those that are to be read. -#}
{%- macro times_emptied(mirror, among) -%}
{%- for table in mirror.tables %}
    select
      {{ loop.index0 }} as rank, {{ sources_before(mirror, table) }} as earlier, seq.generation, seq.phase, event_time, {{ log_of_origin() }} as log, origin.timestamp as sent_at, seq.arrival,
      {{ known_time() }} as at
    from {{ name(table.source.model if among == 'all' else table.rows) }}
    where kind = 'ddl' and op in ('truncate', 'drop') and {{ is_of_table(table.name) }}
    {%- if not loop.last %}
    union all
    {%- endif %}
{%- endfor %}
{%- endmacro -%}

{#- How many entries are before those of a table's source: several tables of one source are parts of one, of which each is emptied by itself. -#}
{%- macro sources_before(mirror, table) -%}
{{- (mirror.tables | map(attribute='source.name') | list).index(table.source.name) -}}
{%- endmacro -%}

{#- What has messages in the order in which they were sent; null for files, of which all are in one order. -#}
{%- macro log_of_origin() -%} concat(origin.topic, '/', origin.partition) {%- endmacro -%}

{%- macro tells_key(mirror, row_key='key_after') -%}
{% for column in mirror.key %}{{ row_key }}.{{ name(column) }} is not null{{ ' and ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- Of a change that removes no row. -#}
{%- macro tells_whole_row() -%} op <> 'update' or after_image = 'full' or moved {%- endmacro -%}

{#- For a comment, which ends with its line. -#}
{%- macro tables_of(mirror) -%}
{% for table in mirror.tables %}{{ table.name | join('.') | replace('\n', ' ') | replace('\r', ' ') }} of source {{ table.source.name }}{{ ', then ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- The rows of the changelog that are of the table. -#}
{%- macro told_of(mirror) -%}
-- The changes of the table, with the names that its columns have here.
sent as (
  select rank, source, op, seq, origin, event_time, valid_from, after_image,
    transform(changed, c -> coalesce(names[lower(c)], c)) as changed,
    {% for image in ['key', 'old_key', 'before', 'after'] %}named_as({{ image }}, names) as {{ image }}{{ ', ' if not loop.last }}{% endfor %}
  from (
    {%- for table in mirror.tables %}
    select {{ loop.index0 }} as rank, *, {{ known_time() }} as valid_from,
      map({{ names_of(mirror) }}) as names
    from {{ rows_of_table(table) }}
    where kind = 'row' and {{ is_of_table(table.name) }}
      and not (op = 'update' and after_image = 'none')
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
  )
)
{%- endmacro -%}

{%- macro keyed_of(mirror) -%}
-- The row that each change is of.{{ ' A change of the key is of two rows.' if mirror.without_key != 'append' }}
keyed as (
  select *, {{ row_keys(mirror) }}
  from sent
)
{%- endmacro -%}

{%- macro changes_of(mirror, share=1, never_emptied=false) -%}
{%- set anew = mirror.tables | selectattr('source.generation') | list -%}
{%- set looks_for_ends = mirror.on_truncate == 'delete' and not never_emptied -%}
{{ told_of(mirror) }},
{%- if looks_for_ends %}

-- When the table was emptied{{ ', or loaded anew' if anew }}.
emptied as (
  select collect_list(struct(rank, earlier, generation, phase, event_time, log, sent_at, arrival, at)) as times
  from (
    {{- times_emptied(mirror, 'all') }}
    {%- if anew %}
    union all
    select rank, case rank {% for table in mirror.tables %}when {{ loop.index0 }} then {{ sources_before(mirror, table) }} {% endfor %}end, seq.generation, -1, null, null, null, null, min(valid_from) from sent
    where op = 'snapshot' and seq.generation > 0
    group by rank, seq.generation
    {%- endif %}
  )
),
{%- endif %}

{{ keyed_of(mirror) }},

-- What each change does to a row: it removes it, or tells all of its columns, or some.
changes as (
  select
    source, op, event_time as changed_at, valid_from, removes,
    named_struct('rank', rank, 'seq', seq) as place,
    if(removes, key_before, key_after) as row_key,
    removes or {{ tells_whole_row() }} as is_whole,
    case
      when removes then map()
      when moved then map_concat(coalesce(before, map()), after)
      when after_image = 'patch' then told_columns(after, changed)
      else coalesce(after, map()) end as told
    {%- if mirror.on_truncate == 'delete' %},
    {{ 'emptied_after(times, rank, seq, event_time, ' ~ log_of_origin() ~ ', origin.timestamp)' if looks_for_ends else 'cast(array() as array<timestamp>)' }} as emptied
    {%- endif %}
  from keyed{{ ' cross join emptied' if looks_for_ends }}
  lateral view explode(case when moved then array(true, false) when op = 'delete' then array(true) else array(false) end) as removes
  where {{ has_key(mirror) }}
  {%- if mirror.key and share != 1 %}
    and {{ is_sampled('if(removes, key_before, key_after)', share) }}
  {%- endif %}
)
{%- endmacro -%}

{#- Around a mirror's query: only the rows that it is to have. -#}
{%- macro where_begins(mirror) -%}{% if mirror.where %}select * from (
{% endif %}{%- endmacro -%}
{%- macro where_ends(mirror) -%}
{%- if mirror.where %}
)
where {{ mirror.where }}
{%- endif %}
{%- endmacro -%}

{#- The changelog that has the changes of a table, with halves of updates joined, or the view of those that are to be read. -#}
{%- macro rows_of_table(table) -%}
{%- if table.rows -%} {{ name(table.rows) }}
{%- elif table.source.format.has_halves -%}
({{ view_changelog([table.source]) | indent(4) }})
{%- else -%} {{ name(table.source.model) }}
{%- endif -%}
{%- endmacro -%}

{#- The best that is known of when a change was made. -#}
{%- macro known_time() -%} coalesce(event_time, produced_at, origin.timestamp) {%- endmacro -%}

{%- macro is_of_table(parts) -%}
table_name = {{ text(parts[-1]) }}
{%- if parts | length == 2 %} and coalesce(schema_name, db_name) = {{ text(parts[0]) }}
{%- elif parts | length > 2 %} and slice(array_compact(array(tenant, db_name, schema_name)), -{{ parts | length - 1 }}, {{ parts | length - 1 }}) = array({{ parts[:-1] | map('sql_text') | join(', ') }})
{%- endif -%}
{%- endmacro -%}

{#- The names under which columns may be sent, in small letters, each with the name that it stands for. -#}
{%- macro names_of(mirror) -%}
{%- set parts = [] -%}
{%- for column in mirror.columns -%}
{%- for sent in [column.name] + (column.sent_as | list) -%} {%- do parts.append(text(sent | lower) ~ ', ' ~ text(column.name)) -%} {%- endfor -%}
{%- endfor -%}
{{ parts | in_lines(8) }}
{%- endmacro -%}

{%- macro type_of(mirror, column) -%} {{- (mirror.columns | selectattr('name', 'equalto', column) | first).type -}} {%- endmacro -%}

{#- The text of a column of the key after a change, and before it. -#}
{%- macro sent_key_after(column) -%} coalesce(key[{{ text(column) }}], if(op = 'delete', before, after)[{{ text(column) }}], before[{{ text(column) }}]) {%- endmacro -%}
{%- macro sent_key_before(column) -%} coalesce(old_key[{{ text(column) }}], before[{{ text(column) }}]) {%- endmacro -%}

{#- The identity of the row after a change and before it, and whether they differ. -#}
{%- macro row_keys(mirror) -%}
{%- if mirror.key -%}
struct({% for column in mirror.key %}{{ typed(sent_key_after(column), type_of(mirror, column)) }} as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}) as key_after,
    struct({% for column in mirror.key %}coalesce({{ typed(sent_key_before(column), type_of(mirror, column)) }}, key_after.{{ name(column) }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}) as key_before,
    op = 'update' and key_before <> key_after as moved
{%- elif mirror.without_key == 'whole_row' -%}
struct(key_text({{ declared_part(mirror, 'if(op = \'delete\', before, after)') }}) as row) as key_after,
    struct(key_text({{ declared_part(mirror, 'before') }}) as row) as key_before,
    op = 'update' and coalesce(key_before <> key_after, false) as moved
{%- else -%}
struct(rank, seq) as key_after, key_after as key_before, false as moved
{%- endif -%}
{%- endmacro -%}

{%- macro declared_part(mirror, image) -%}
map_filter({{ image }}, (c, v) -> c in ({{ mirror.columns | map(attribute='name') | map('sql_text') | join(', ') }}))
{%- endmacro -%}

{%- macro has_key(mirror) -%}
{%- if mirror.without_key == 'append' -%} op <> 'delete'
{%- else -%}
{% for column in (mirror.key or ['row']) %}if(removes, key_before, key_after).{{ name(column) }} is not null{{ ' and ' if not loop.last }}{% endfor %}
{%- endif -%}
{%- endmacro -%}

{#- Whether a key is among those that are looked at today. -#}
{%- macro is_sampled(key, share) -%} pmod(xxhash64({{ key }}, current_date()), 1000000) < {{ share }} * 1000000 {%- endmacro -%}

{#- The columns of the table, typed, in one column: their names may be those of other columns of a step. `over` is the condition under which columns that are
    not told are those of `own_row`. -#}
{%- macro typed_row(mirror, key, over='') -%}
{%- set parts = [] -%}
{%- for column in mirror.columns -%}
{%- set value = key ~ '.' ~ name(column.name) if column.name in mirror.key else typed('told[' ~ text(column.name) ~ ']', column.type) -%}
{%- set value = 'if(' ~ over ~ ' and not map_contains_key(told, ' ~ text(column.name) ~ '), own_row.' ~ name(column.name) ~ ', ' ~ value ~ ')' if over and column.name not in mirror.key else value -%}
{%- do parts.append(value ~ ' as ' ~ name(column.name)) -%}
{%- endfor -%}
struct(
    {{ parts | in_lines(4) }})
{%- endmacro -%}

{#- The columns of a mirror: those of the table, then those that all mirrors have. -#}
{%- macro columns_shown(mirror, others) -%}
{%- set parts = [] -%}
{%- for column in mirror.columns -%} {%- do parts.append('row.' ~ name(column.name)) -%} {%- endfor -%}
{{ (parts + others) | in_lines(2) }}
{%- endmacro -%}

{#- The values that are not in the typed columns though they were told; with `over`, also those of `own_row`. -#}
{%- macro unfit(mirror, over='') -%}
{%- if over -%} if({{ over }}, unfit_then(own_row._unfit, told, {{ unfit(mirror) }}), {{ unfit(mirror) }})
{%- else -%} {{ unfit_of_told(mirror) }}
{%- endif -%}
{%- endmacro -%}

{%- macro unfit_of_told(mirror) -%}
{%- set parts = [] -%}
{%- for column in mirror.columns if column.type != 'string' and column.name not in mirror.key -%}
{%- do parts.append('if(row.' ~ name(column.name) ~ ' is null, ' ~ text(column.name) ~ ', null)') -%}
{%- endfor -%}
{%- if parts -%}
unfit_columns(told, array(
    {{ parts | in_lines(4) }}))
{%- else -%} cast(null as map<string,string>)
{%- endif -%}
{%- endmacro -%}

{#- A text as a value of a type; null if it does not fit. -#}
{%- macro typed(value, type) -%}
{%- if type == 'string' -%} {{ value }}
{%- elif type in ('double', 'float', 'date', 'timestamp', 'timestamp_ntz', 'binary') -%} as_{{ type }}({{ value }})
{%- elif type.startswith('decimal') -%} {{ typed_decimal(value, type, type.split(',')[1][:-1]) }}
{%- else -%} try_cast({{ value }} as {{ type }})
{%- endif -%}
{%- endmacro -%}

{#- Not a cast alone, which rounds. -#}
{%- macro typed_decimal(value, type, scale) -%}
if({{ value }} rlike '^[+-]?[0-9]*([.][0-9]{0,{{ scale }}}0*)?$', try_cast({{ value }} as {{ type }}), null)
{%- endmacro -%}

{#- A mirror that takes in new changes. Beside its table is one of the rows that are gone, or that `where` leaves out: their keys, and up to which place they
    are known. A row that comes back stays there: what the mirror has of it counts. -#}

{#- Each row that was ever there, as all changes make it. -#}
{%- macro state_whole(mirror) -%}
{{ known_of(mirror) }}

{{ with_fate(mirror, 'known') }}
{%- endmacro -%}

{%- macro state_beside(mirror, whole) -%}
select {{ key_columns_of(mirror, '_row_key') }}, _newest.place as _known_until, _in_parts from {{ name(whole) }} where _is_gone
{%- endmacro -%}

{%- macro state_rows(mirror, whole) -%}
select {{ mirror.state_columns | map('name') | join(', ') }} from {{ name(whole) }} where not _is_gone
{%- endmacro -%}

{#- The rows that the mirror has now. -#}
{%- macro state_now(table) -%} {{ table }} {%- endmacro -%}

{#- The rows that new changes tell of, typed, each with what is to be done with it: `take` it as they say, since they tell all of it and come after what is
    known; lay the columns that they tell `over` it; or look at all of its changes `again`, since they tell columns of a row that is gone, or come before others
    that do. Those that come before what is known are not there. `new` is the mirror as it reads only the new changes.

    While no change has told parts of a row, the rows of the table need not be looked up: the newest change counts, which the merge sees. -#}
{%- macro state_decided(mirror, new, table, gone, found) -%}
{{ known_of(new, found=found) }},

looked_up as (
  select one.*, gone._known_until as gone_until
    {%- if found.has_parts %},
    if(own._source is null, null, struct(own.*)) as own_row,
    coalesce(if(own._source is null, null, {{ place_of(mirror, 'own') }}), gone._known_until) as known_until,
    coalesce(own._in_parts, gone._in_parts, false) as known_in_parts
    {%- endif %}
  from known as one
  {%- if found.has_parts %}
  left join {{ table }} as own on {{ key_matches(mirror, 'own', found, 'one.row_key') }}
  {%- endif %}
  left join (
    select {{ key_columns_of(mirror, 'gone') }}, max(_known_until) as _known_until, max_by(_in_parts, _known_until) as _in_parts
    from {{ gone }} as gone
    where {{ in_bounds(mirror, 'gone', found) }}
    group by {{ key_columns_of(mirror, 'gone') }}
  ) as gone on {{ key_matches(mirror, 'gone', found, 'one.row_key') }}
),
decided as (
  select *,
    {% if found.has_parts -%}
    case
      when newest_whole > known_until or (known_until is null and newest_whole is not null) then 'take'
      when own_row is not null and newest_whole is null and first_part > known_until then 'over'
      when newest.place <= known_until and not known_in_parts then 'leave'
      else 'again' end
    {%- else -%}
    if(newest.place < gone_until, 'leave', 'take')
    {%- endif %} as decision
  from looked_up
)

{{ with_fate(mirror, "(select * from decided where decision <> 'leave')", "decision = 'over'" if found.has_parts else '', 'decision') }}
{%- endmacro -%}

{#- `beside`: how many of the rows are, or may be, to be remembered as gone. -#}
{%- macro state_decisions(decided) -%}
select count(*) as changed, count_if(_decision = 'again') as again, count_if(_is_gone or _decision = 'again') as beside from {{ name(decided) }}
{%- endmacro -%}

{#- The place of the change that a row of the mirror comes from. -#}
{%- macro place_of(mirror, own) -%} named_struct('rank', {{ rank_of(mirror, own ~ '._source') }}, 'seq', {{ own }}._seq) {%- endmacro -%}

{%- macro rank_of(mirror, source) -%}
case {{ source }} {% for table in mirror.tables %}when {{ text(table.source.name) }} then {{ loop.index0 }} {% endfor %}end
{%- endmacro -%}

{#- The rows that change, typed, where some must be looked at again. -#}
{%- macro state_changed(mirror, decided) -%}
{{ known_of(mirror) }}

select * from {{ name(decided) }} where _decision <> 'again'
union all
select * from (
  {{ with_fate(mirror, '(select known.* from known left semi join ' ~ name(decided) ~ " as one on known.row_key = one._row_key and one._decision = 'again')", '', "'again'") | indent(2) }}
)
{%- endmacro -%}

{#- Rows with all columns of the mirror, and whether it is not to have them. With `over`, columns that a change does not tell are those of its row. -#}
{%- macro with_fate(mirror, rows, over='', decision='') -%}
select *, _newest.removes or not {{ is_kept(mirror) }} as _is_gone
from (
  select {{ decision ~ ' as _decision, ' if decision }}row_key as _row_key, newest as _newest, {{ shown_state(mirror, over) }}
  from (select *, {{ typed_row(mirror, 'row_key', over) }} as row from {{ rows }})
)
{%- endmacro -%}

{#- Whether the mirror is to have a row. -#}
{%- macro is_kept(mirror) -%} coalesce({{ mirror.where or 'true' }}, false) {%- endmacro -%}

{%- macro key_columns_of(mirror, row) -%}
{% for column in mirror.key %}{{ row }}.{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- With the first and the last value of each column as literals, which keep files from being read that can have none of these rows. -#}
{%- macro key_matches(mirror, row, bounds, key) -%}
{% for column in mirror.key %}{{ row }}.{{ name(column) }} = {{ key }}.{{ name(column) }} and {% endfor %}{{ in_bounds(mirror, row, bounds) }}
{%- endmacro -%}

{%- macro in_bounds(mirror, row, bounds) -%}
true
{%- for column in mirror.key %}
{%- if type_of(mirror, column) != 'binary' %} and {{ row }}.{{ name(column) }} between {{ bound(mirror, column, bounds['first_' ~ loop.index0]) }} and {{ bound(mirror, column, bounds['last_' ~ loop.index0]) }}{% endif %}
{%- endfor -%}
{%- endmacro -%}

{%- macro bound(mirror, column, value) -%} cast({{ text(value) }} as {{ type_of(mirror, column) }}) {%- endmacro -%}

{#- Of a key that is there already the newest place counts. -#}
{%- macro state_beside_written(mirror, gone, changed, bounds) -%}
insert into {{ gone }} ({{ mirror.key | map('name') | join(', ') }}, _known_until, _in_parts)
select {{ key_columns_of(mirror, '_row_key') }}, _newest.place, _in_parts from {{ name(changed) }} where _is_gone
{%- endmacro -%}

{%- macro state_merged(mirror, table, changed, bounds) -%}
{%- set columns = mirror.state_columns -%}
{%- set is_not_older = 'new._newest.place >= ' ~ place_of(mirror, 'own') -%}
merge into {{ table }} as own using {{ name(changed) }} as new
on {{ key_matches(mirror, 'own', bounds, 'new._row_key') }}
when matched and new._is_gone and {{ is_not_older }} then delete
when matched and {{ is_not_older }} then update set {% for column in columns %}own.{{ name(column) }} = new.{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}

when not matched and not new._is_gone then insert ({{ columns | map('name') | join(', ') }})
  values ({% for column in columns %}new.{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{#- Of a source and a table, if they are given; the first parts of the table's name may be missing. -#}
{%- macro changes_seen(source, table) -%}
true
{%- if source %} and source = {{ text(source) }}{% endif %}
{%- if table %} and table_name = {{ text(table[-1]) }} and slice({{ table_of_row() }}, -{{ table | length }}, {{ table | length }}) = array({{ table | map('sql_text') | join(', ') }})
{%- endif -%}
{%- endmacro -%}

{#- The tables of which changes have landed: their keys, and how much changes tell. -#}
{%- macro tables_seen(changelog, source, table) -%}
select
  source, {{ table_of_row() }} as names,
  count(*) as changes,
  count_if(key is null) as without_key,
  count_if(op = 'update' and after_image in ('partial', 'key', 'patch')) as partial,
  max_by(map_keys(key), struct(batch, seq)) filter (where key is not null) as key_columns
from {{ name(changelog) }}
where {{ changes_seen(source, table) }}
group by all
order by all
{%- endmacro -%}

{#- The columns in the images of these tables: their types, and how many values do not fit those of SQL. -#}
{%- macro columns_seen(changelog, source, table, tried) -%}
select
  source, names, column,
  max_by(type, place) filter (where type is not null) as type,
  {%- for type in tried %}
  count_if(value is not null and {{ typed('value', type) }} is null) as unfit_{{ type }},
  {%- endfor %}
  count_if(value not rlike '^[+-]?[0-9]+([.][0-9]*)?$') as no_numbers,
  max(length(regexp_extract(value, '^[+-]?0*([0-9]*)', 1))) as integer_digits,
  max(length(regexp_extract(value, '[.]([0-9]*?)0*$', 1))) as fraction_digits,
  max_by(nth, place) as nth
from (
  select source, {{ table_of_row() }} as names, struct(batch, seq) as place, types[column] as type, column, value, nth
  from {{ name(changelog) }}
  lateral view posexplode(map_entries(coalesce(after, before))) as nth, entry
  lateral view explode(array(entry.key)) as column
  lateral view explode(array(entry.value)) as value
  where {{ changes_seen(source, table) }}
)
group by all
order by source, names, nth
{%- endmacro -%}

{%- macro table_of_row() -%} array_compact(array(tenant, db_name, schema_name, table_name)) {%- endmacro -%}
