{#- Mirrors: a table as it is in its database, made of its changes. -#}

{#- With a `share` less than 1 only some of all keys. -#}
{%- macro mirror_state(mirror, share=1, found={}) -%}
-- {{ mirror.name }}: {{ tables_of(mirror) }}, each row as it is now
{{ where_begins(mirror) }}{{ known_of(mirror, share, found) }},

-- The rows that are there, typed.
typed as (
  select newest, in_parts, told, unlisted, only_parts, {{ typed_row(mirror, 'row_key') }} as row
  from known
  {%- if mirror.without_key == 'count' %}
  lateral view explode(if(copies > 0, sequence(1, copies), array())) as copy
  {%- else %}
  where not newest.removes
  {%- endif %}
)

select
  {{ shown_state(mirror) }}
from typed
{{- where_ends(mirror) }}
{%- endmacro -%}

{#- `found` are the findings of these changes: the query is without what none of them needs. Until a change tells parts of a row, the newest one tells all
    of it. -#}
{%- macro known_of(mirror, share=1, found={}) -%}
{%- set is_image = 'is_whole and not removes' if mirror.without_key == 'count' else 'is_whole' -%}
with
{{ changes_of(mirror, share, found) }},

-- What is known of each row that was ever there.
known as (
  select
    {% if mirror.key %}struct({% for column in mirror.key %}row_key.{{ name(column) }} as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}) as {% endif %}row_key,
    max_by(struct(place, source, changed_at, removes), place) as newest,
    min_by(place, arrived) as first_arrived,
    min(if(numbered_in is null, changed_at, null)) as goes_back_to,
    {%- if mirror.without_key == 'count' %}
    sum(copies) as copies,
    {%- endif %}
    {%- if found and not found.has_parts and not found.statements %}
    max_by(told, place){{ ' filter (where not removes)' if mirror.without_key == 'count' }} as told,
    {% if mirror.lists_columns %}max_by(unlisted, place){% else %}cast(null as array<string>){% endif %} as unlisted,
    false as only_parts,
    false as in_parts
    {%- else %}
    max(place) filter (where is_whole) as newest_whole,
    min(place) filter (where not is_whole) as first_part,
    coalesce(
      max(place) filter (where not is_whole) > max(place) filter (where is_whole),
      max(place) filter (where not is_whole) is not null) as in_parts,
    {% if mirror.lists_columns %}max_by(unlisted, place) filter (where is_whole){% else %}cast(null as array<string>){% endif %} as unlisted,
    not bool_or(is_whole) as only_parts,
    {%- if has_statements(found) %}
    {{ told_and_rewritten('max_by(struct(told, later), place) filter (where ' ~ is_image ~ ')', 'max(place) filter (where ' ~ is_image ~ ')', 'collect_list(struct(place, told, later)) filter (where not is_whole)', 'any_value(effects)') }} as told
    {%- else %}
    known_columns(
      max_by(told, place) filter (where {{ is_image }}),
      max(place) filter (where {{ is_image }}),
      collect_list(struct(place, told)) filter (where not is_whole)) as told
    {%- endif %}
    {%- endif %}
  from changes
  {%- if has_statements(found) %}
  where emptied_nth is null
  {%- endif %}
  group by {{ columns_of_row(mirror) }}
)
{%- endmacro -%}

{#- Whether statements may change rows: nobody knows, or the findings say so. -#}
{%- macro has_statements(found) -%} {{ 'yes' if not found or found.statements }} {%- endmacro -%}

{%- macro shown_state(mirror, over='') -%}
{{ columns_shown(mirror, ['newest.changed_at as _changed_at', 'newest.place as _seq', 'newest.source as _source', 'in_parts as _in_parts', untold(mirror, over) ~ ' as _untold', unfit(mirror, over) ~ ' as _unfit']) }}
{%- endmacro -%}

{#- The columns that the table has and of which nobody knows what the row has. -#}
{%- macro untold(mirror, over='') -%}
{%- set unlisted -%} if(only_parts, {{ other_columns(mirror) }}, {{ without_added('unlisted', mirror) }}) {%- endset -%}
untold_columns({% if over %}if({{ over }}, coalesce(own_row._untold, array()), {{ unlisted }}){% else %}{{ unlisted }}{% endif %}, told)
{%- endmacro -%}

{#- Without the columns that rows have a default of that were there before them. -#}
{%- macro without_added(columns, mirror) -%}
{%- set added = mirror.columns | rejectattr('added_with', 'none') | map(attribute='name') | list -%}
{%- if added -%} array_except({{ columns }}, array({{ added | map('sql_text') | join(', ') }})) {%- else -%} {{ columns }} {%- endif -%}
{%- endmacro -%}

{#- The defaults of columns, each as the first message with the column names it: rows that were there before have that one, whatever comes later. There is
    none of a column that comes when another one goes, which may be the same with a new name, and none that is empty, which may stand for an expression. -#}
{%- macro defaults_told(mirror) -%}
with
{{ told_of(mirror, with_lists=true) }},

-- What columns the table has had, which changes seldom.
lists as (
  select listed, min(struct(batch, seq.arrival)) as begins, min_by(defaults, struct(batch, seq.arrival)) as defaults
  from sent
  where listed is not null
  group by listed
),

begun as (
  select column, min_by(defaults[column], begins) as value, min_by(array_except(previous, listed), begins) as gone
  from (
    select *, lag(listed) over (order by begins) as previous from lists
  ) lateral view explode(listed) as column
  group by column
)
select column, value
from begun
where array_contains({{ other_columns(mirror) }}, column) and not coalesce(size(gone) > 0, false)
  and not value rlike '^(-?0*([.]0*)?|false|1970-01-01([T ]00:00:00([.]0*)?Z?)?|00:00:00([.]0*)?Z?|0{8}(-0{4}){3}-0{12})$'
order by column
{%- endmacro -%}

{#- The columns that a row may be without: not those of the key, and not those of which a default is known. -#}
{%- macro other_columns(mirror) -%}
cast(array({% for column in mirror.columns if column.name not in mirror.key and not column.has_default %}{{ text(column.name) }}{{ ', ' if not loop.last }}{% endfor %}) as array<string>)
{%- endmacro -%}

{#- What must be looked at before a mirror is built: one row with the columns that it does not have, whatever the case of their letters, how many changes do
    not tell the key, whether some tell only parts of a row, in which log they are numbered, if all are in one, and by how many numbers. Of new changes, which a table `is_to_take_in`,
    also how many tell the key, and the first and the last value of each of its columns. -#}
{%- macro mirror_findings(mirror, is_to_take_in=false) -%}
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
  tells_parts,
  if(without_numbers = 0 and first_log = last_log, first_log, null) as numbered_in,
  numbers
  {%- if is_to_take_in %},
  with_key
  {%- for column in mirror.key %},
  cast(first_{{ loop.index0 }} as string) as first_{{ loop.index0 }},
  cast(last_{{ loop.index0 }} as string) as last_{{ loop.index0 }}
  {%- endfor %}
  {%- endif %}
from (
  select
    array_sort(array_distinct(flatten(collect_set(map_keys(coalesce(after, before)))))) as columns,
    {% if rejects_all(mirror) %}count(*){% elif mirror.key %}count_if(not ({{ tells_key(mirror) }})){% else %}0{% endif %} as without_key,
    coalesce(bool_or(not ({{ tells_whole_row() }})), false) as tells_parts,
    count_if(numbered_in is null) as without_numbers, min(numbered_in) as first_log, max(numbered_in) as last_log, max(size(seq.position)) as numbers
    {%- if is_to_take_in %},
    count_if({{ tells_key(mirror) }} or {{ tells_key(mirror, 'key_before') }}) as with_key
    {%- for column in mirror.key %},
    least(min(key_before.{{ name(column) }}), min(key_after.{{ name(column) }})) as first_{{ loop.index0 }},
    greatest(max(key_before.{{ name(column) }}), max(key_after.{{ name(column) }})) as last_{{ loop.index0 }}
    {%- endfor %}
    {%- endif %}
  from keyed
)
{%- endmacro -%}

{#- The statements that may have changed what rows tables have, or what is in them. -#}
{%- macro statements_told(models) -%}
{%- for model in models %}
select
  source, batch, op, statement, tenant, db_name, schema_name, table_name, meta, seq.generation, transform(seq.position, n -> cast(n as string)) as position,
  {{ numbered_in() }} as numbered_in, unix_micros({{ written_at() }}) as sent_at, {{ log_of_origin() }} as log, seq.arrival, unix_micros({{ known_time() }}) as at, unix_micros(event_time) as happened_at
from {{ name(model) }}
where kind = 'ddl' and op in ('create', 'alter', 'drop', 'truncate', 'rename', 'other')
{%- if not loop.last %}
union all
{%- endif %}
{%- endfor %}
{%- endmacro -%}

{#- Loads of the table after the first one, each of which ends what was before it, as statements. -#}
{%- macro loads_told(mirror) -%}
with
{{ told_of(mirror) }}
select
  rank, source, 'load' as op, cast(null as string) as statement, cast(null as string) as tenant, cast(null as string) as db_name, cast(null as string) as schema_name, cast(null as string) as table_name,
  min(batch) as batch, seq.generation, cast(array() as array<string>) as position, cast(null as string) as numbered_in, cast(null as bigint) as sent_at, cast(null as string) as log,
  cast(array() as array<bigint>) as arrival, unix_micros(min(valid_from)) as at, cast(null as bigint) as happened_at
from sent
where op = 'snapshot' and seq.generation > 0
group by rank, source, seq.generation
{%- endmacro -%}

{#- The tables with a name of which something was told, two of them at most. -#}
{%- macro tables_named(table) -%}
select distinct {{ table_of_row() }} as names from {{ name(table.source.model) }} where kind = 'row' and {{ is_of_table(table.name) }} limit 2
{%- endmacro -%}

{#- What statements did to the table of a mirror, in their order: a view. -#}
{%- macro statement_effects(effects) -%}
{%- for one in effects %}
select
  {{ loop.index }} as nth, {{ one.rank }} as rank, {{ one.called }} as called, {{ one.earlier }} as earlier, {{ one.generation }} as generation, {{ numbers(one.position) }} as position, {{ given_text(one.numbered_in) }} as numbered_in,
  {{ given_instant(one.sent_at) }} as sent_at, {{ given_text(one.log) }} as log, cast(array({{ one.arrival | join(', ') }}) as array<bigint>) as arrival, {{ given_instant(one.at) }} as at, {{ given_instant(one.happened_at) }} as happened_at,
  {{ 'true' if one.empties else 'false' }} as empties, {{ given_map(one.told) }} as told, {{ given_map(one.renamed) }} as renamed
{%- if not loop.last %}
union all
{%- endif %}
{%- else %}
{{ no_rows({'nth': 'int', 'rank': 'int', 'called': 'int', 'earlier': 'int', 'generation': 'int', 'position': 'array<decimal(38,0)>', 'numbered_in': 'string', 'sent_at': 'timestamp', 'log': 'string', 'arrival': 'array<bigint>', 'at': 'timestamp', 'happened_at': 'timestamp', 'empties': 'boolean', 'told': 'map<string,string>', 'renamed': 'map<string,string>'}) }}
{%- endfor %}
{%- endmacro -%}

{#- The statements about the table of a mirror that cannot be followed: a view. -#}
{%- macro lost_statements(lost) -%}
{%- for one in lost %}
select {{ text(one.source) }} as source, {{ one.batch }} as batch, {{ text(one.statement) }} as statement, {{ text(one.why) }} as why, {{ given_instant(one.at) }} as at
{%- if not loop.last %}
union all
{%- endif %}
{%- else %}
{{ no_rows({'source': 'string', 'batch': 'bigint', 'statement': 'string', 'why': 'string', 'at': 'timestamp'}) }}
{%- endfor %}
{%- endmacro -%}
{%- macro numbers(position) -%} cast(array({{ position | join(', ') }}) as array<decimal(38,0)>) {%- endmacro -%}
{%- macro given_text(value) -%} {{ 'cast(null as string)' if value is none else text(value) }} {%- endmacro -%}
{%- macro given_instant(value) -%} {{ 'cast(null as timestamp)' if value is none else 'timestamp_micros(' ~ value ~ ')' }} {%- endmacro -%}
{%- macro given_map(entries) -%}
cast(map({% for key, value in entries.items() %}{{ text(key) }}, {{ given_text(value) }}{{ ', ' if not loop.last }}{% endfor %}) as map<string,string>)
{%- endmacro -%}

{#- What has messages in one order: a partition of a topic, or a file. -#}
{%- macro log_of_origin() -%} coalesce(concat(origin.topic, '/', origin.partition), origin.file) {%- endmacro -%}
{%- macro written_at() -%} coalesce(produced_at, origin.timestamp) {%- endmacro -%}
{#- In which log the numbers of a message count; null if it has none. -#}
{%- macro numbered_in(format={}) -%} if(size(seq.position) = 0, null, {{ "coalesce(meta['log'], '')" if not format or 'log' in format.meta else "''" }}) {%- endmacro -%}

{#- Whether no change has a row, since nobody knows which. -#}
{%- macro rejects_all(mirror) -%} {{ 'yes' if not mirror.key and mirror.without_key == 'reject' }} {%- endmacro -%}

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
{%- macro told_of(mirror, with_lists=false) -%}
-- The changes of the table, with the names that its columns have here.
sent as (
  select rank, source, batch, op, seq, numbered_in, sent_at, log{{ ', called, called_since, called_until' if mirror.was_renamed }}, event_time, produced_at, valid_from, after_image,
    {% if mirror.tells_defaults %}named_as(from_json(meta['defaults'], 'map<string,string>'), names) as defaults,
    {% endif -%}
    {% if with_lists %}array_sort(map_keys(named_as(types, names))) as listed,
    {% endif -%}
    {% if mirror.lists_columns %}array_except({{ other_columns(mirror) }}, map_keys(named_as(types, names))) as unlisted,
    {% endif -%}
    transform(changed, c -> coalesce(names[lower(c)], c)) as changed,
    {% for image in ['key', 'old_key', 'before', 'after'] %}named_as({{ with_meta(mirror, image) }}, names) as {{ image }}{{ ', ' if not loop.last }}{% endfor %}
  from (
    {%- for table in mirror.tables %}
    {%- set rank = loop.index0 %}
    {%- set is_last_table = loop.last %}
    {%- for called in table.called %}
    select {{ rank }} as rank, *, {{ numbered_in(table.source.format) }} as numbered_in, {{ written_at() }} as sent_at, {{ log_of_origin() }} as log, {{ known_time() }} as valid_from,
      map({{ names_of(mirror) }}) as names
      {%- if table.names %}, {{ loop.index0 }} as called, {{ called.since }} as called_since, {{ called.until }} as called_until{% elif mirror.was_renamed %}, 0 as called, 0 as called_since, 0 as called_until{% endif %}
    from {{ rows_of_table(table) }}
    where kind = 'row' and {{ is_of_table(called.name) }}
      and not (op = 'update' and after_image = 'none')
    {%- if not (loop.last and is_last_table) %}
    union all
    {%- endif %}
    {%- endfor %}
    {%- endfor %}
  )
)
{%- endmacro -%}

{#- An image with what `meta` has: before a change that gives a row another id, the old one. -#}
{%- macro with_meta(mirror, image) -%}
{%- if mirror.meta_names -%}
map_concat({{ image }}, map({% for name in mirror.meta_names %}{{ text('meta.' ~ name) }}, {% if image in ('before', 'old_key') %}coalesce(meta[{{ text('old_' ~ name) }}], meta[{{ text(name) }}]){% else %}meta[{{ text(name) }}]{% endif %}{{ ', ' if not loop.last }}{% endfor %}))
{%- else -%} {{ image }}
{%- endif -%}
{%- endmacro -%}

{%- macro keyed_of(mirror) -%}
-- The row that each change is of.{{ ' A change of the key is of two rows.' if mirror.without_key != 'append' }}
keyed as (
  select *, {{ row_keys(mirror) }}
  from sent
)
{%- endmacro -%}

{%- macro changes_of(mirror, share=1, found={}) -%}
{{ told_of(mirror) }},

{{ keyed_of(mirror) }},

-- What each change does to a row: it removes it, or tells all of its columns, or some.
told_changes as (
  select
    source, op, event_time as changed_at, valid_from, removes,
    if(removes, key_before, key_after) as row_key,
    removes or {{ tells_whole_row() }} as is_whole,
    {%- if mirror.without_key == 'count' %}
    case when removes then -1 when op = 'update' and not moved then 0 else 1 end as copies,
    {%- endif %}
    {%- if mirror.lists_columns %}
    -- Also of a row that is told as new without all its columns: what was not logged when its key changed. The empty name marks it.
    if(after_image in ('partial', 'key') and not removes and (op <> 'update' or moved),
      array_union(array_append(coalesce(unlisted, array()), ''), array_except({{ other_columns(mirror) }}, map_keys(if(moved, map_concat(coalesce(before, map()), after), after)))),
      unlisted) as unlisted,
    {%- endif %}
    case
      when removes then map()
      when moved then map_concat(coalesce(before, map()), after)
      when after_image = 'patch' then told_columns(after, changed)
      else coalesce(after, map()) end as told,
    rank, seq.generation, seq.phase, load_text({{ '1000 * rank - called' if mirror.was_renamed else 'rank' }}, seq.generation, seq.phase) as load, numbered_in, seq.position,
    sent_at, produced_at, log, seq.arrival, seq.row as row_index{{ ', called, called_since, called_until' if mirror.was_renamed }}
  from keyed
  lateral view explode(case when moved then array(true, false) when op = 'delete' then array(true) else array(false) end) as removes
  where {{ has_key(mirror) }}
  {%- if mirror.key and share != 1 %}
    and {{ is_sampled('if(removes, key_before, key_after)', share) }}
  {%- endif %}
),

{{ ordered_changes(mirror, 'told_changes', found) }}
{%- if has_statements(found) %},

-- What statements did to the table after each change, in their order.
effects as (
  select array_sort(
    collect_list(struct(nth, rank, called, earlier, generation, position, numbered_in, sent_at, log, arrival, at, happened_at, empties, told, renamed)),
    (a, b) -> a.nth - b.nth) as effects
  from {{ name(mirror.name ~ '__statements') }}
),
changes as (
  select * except (emptied, later), emptied.at as emptied_at,
    -- Those that it lived to see.
    filter(later, n -> coalesce(n < emptied.nth, true)) as later, emptied.nth as emptied_nth
  from (
    select *, get(filter(effects, e -> e.empties and array_contains(later, e.nth)), 0) as emptied
    from (
      select *, effects_after(effects, rank, {{ 'called' if mirror.was_renamed else '0' }}, generation, phase, numbered_in, position, stretch, begins, struct(told_at, arrival, log), changed_at) as later
      from ordered cross join effects
    )
    {%- if mirror.was_renamed %}
    where (called_since = 0 or not array_contains(later, called_since)) and (called_until = 0 or array_contains(later, called_until))
    {%- endif %}
  )
)
{%- else %},
changes as (
  select *, cast(array() as array<int>) as later from ordered
)
{%- endif %}
{%- endmacro -%}

{#- The order of the changes of each row (docs/changelog.md): what was told last wins. Each has a `place`, which sorts as they follow each other, and `arrived`,
    which sorts as they came.

    Where all changes are numbered in one log the numbers alone say it. Else the changes of a row, as they came, are cut into stretches where the log that
    numbers them changes; changes without numbers are stretches of their own. What came before is told again if it is the same change, and is left out. -#}
{%- macro ordered_changes(mirror, changes, found) -%}
{%- set row = columns_of_row(mirror) -%}
{%- set formats = mirror.tables | map(attribute='source.format') | list -%}
{%- set may_be_numbered = formats | selectattr('seq') | list -%}
{%- set names_logs = [] -%}
{%- for format in formats if 'log' in format.meta -%} {%- do names_logs.append(format) -%} {%- endfor -%}
{%- if found.numbered_in is defined and found.numbered_in is not none -%}
-- In the order of their numbers.
ordered as (
  select *, place_text(load, 0, numbered_in, position, op = 'snapshot', arrived) as place
    {%- if has_statements(found) %},
    sent_at as told_at, 0 as stretch, cast(array() as array<struct<told_at timestamp, arrival array<bigint>, log string>>) as begins
    {%- endif %}
  from (select *, arrival_text(sent_at, arrival, row_index, log) as arrived from {{ changes }})
)
{%- else -%}
-- As they came: within a log in its order, between logs by when they were sent.
came as (
  select *, arrival_text(told_at, arrival, row_index, log) as arrived, op = 'snapshot' and numbered_in is null and produced_at is not null as is_load_of_time
  from (
    select *, max(sent_at) over (partition by {{ row }}, load, log order by arrival, row_index rows between unbounded preceding and current row) as told_at
    from (select * from {{ changes }} distribute by {{ row }})
  )
),

-- Without those that are told again: numbers show it, or a time that goes back, or of a loaded row when it was sent.
told_once as (
  select * from (
    select *,
      row_number() over (
        partition by {{ row }}, load, xxhash64(numbered_in, position, changed_at, op, removes, map_keys(told), array_join(map_values(told), '\u0001', '\u0002'){{ ', row_index' if not mirror.key }}, if(is_load_of_time, produced_at, null))
        order by arrived) as times_told,
      changed_at < max(changed_at) over (partition by {{ row }}, load order by arrived rows between unbounded preceding and 1 preceding) as goes_back
    from came
  )
  where times_told = 1 or not coalesce(numbered_in is not null or is_load_of_time or goes_back, false)
),

{%- if names_logs %}
-- A change whose log is not named is numbered in the one before it.
named as (
  select * except (numbered_in),
    if(numbered_in is null, null, coalesce(nullif(numbered_in, ''), last_value(nullif(numbered_in, ''), true) over (partition by {{ row }}, load order by arrived rows between unbounded preceding and current row), '')) as numbered_in
  from told_once
),

{% endif %}
{%- if may_be_numbered %}
-- Numbers are compared only where all changes between two are numbered in the same log.
stretched as (
  select *, cast(sum(if(is_cut, 1, 0)) over (partition by {{ row }}, load order by arrived rows between unbounded preceding and current row) as int) as stretch
  from (
    select *, lag(1) over so_far is not null and not numbered_in <=> lag(numbered_in) over so_far as is_cut
    from {{ 'named' if names_logs else 'told_once' }}
    window so_far as (partition by {{ row }}, load order by arrived)
  )
),
{% endif %}
ordered as (
  select *, place_text(load, {{ 'stretch' if may_be_numbered else '0' }}, numbered_in, position, op = 'snapshot', arrived) as place
    {%- if has_statements(found) %},
    {{ 'collect_list(if(is_cut, struct(told_at, arrival, log), null)) over (partition by ' ~ row ~ ', load)' if may_be_numbered else '0 as stretch, cast(array() as array<struct<told_at timestamp, arrival array<bigint>, log string>>)' }} as begins
    {%- endif %}
  from {{ 'stretched' if may_be_numbered else 'told_once' }}
)
{%- endif %}
{%- endmacro -%}

{#- What tells a row from others: a key of several columns sorts slowly as one value. -#}
{%- macro columns_of_row(mirror) -%} {{ key_columns_of(mirror, 'row_key') if mirror.key else 'row_key' }} {%- endmacro -%}

{#- What is known of a row after the changes that tell all of it and parts of it, and after statements that changed its columns. -#}
{%- macro told_and_rewritten(whole, since, parts, effects) -%}
aggregate(
      array_sort(
        filter({{ parts }}, p -> coalesce(p.place > {{ since }}, true)),
        (a, b) -> case when a.place < b.place then -1 when a.place > b.place then 1 else 0 end),
      coalesce({{ whole }}, struct(cast(map() as map<string,string>) as told, cast(array() as array<int>) as later)),
      (known, p) -> struct(map_concat({{ rewritten('known.told', 'array_except(known.later, p.later)', effects) }}, p.told) as told, p.later as later),
      known -> {{ rewritten('known.told', 'known.later', effects) }})
{%- endmacro -%}

{#- An image after some of the statements: columns have other names, or other values. -#}
{%- macro rewritten(image, nths, effects) -%}
aggregate(filter({{ effects }}, e -> array_contains({{ nths }}, e.nth) and not e.empties), {{ image }}, (image, e) -> map_concat(
        map_from_entries(transform(filter(map_entries(image), c -> not map_contains_key(e.told, c.key)), c -> struct(coalesce(e.renamed[c.key], c.key) as key, c.value as value))), e.told))
{%- endmacro -%}

{#- Around a mirror's query: only the rows that it is to have. -#}
{%- macro where_begins(mirror) -%}{% if mirror.where %}select * from (
{% endif %}{%- endmacro -%}
{%- macro where_ends(mirror) -%}
{%- if mirror.where %}
)
where {{ bracketed(mirror.where) }}
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
{%- elif mirror.without_key in ('whole_row', 'count') -%}
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
{%- elif rejects_all(mirror) -%} false
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
{%- set value = key ~ '.' ~ name(column.name) if column.name in mirror.key else typed(told_value(column), column.type) -%}
{%- set value = 'if(' ~ over ~ ' and not map_contains_key(told, ' ~ text(column.name) ~ '), own_row.' ~ name(column.name) ~ ', ' ~ value ~ ')' if over and column.name not in mirror.key else value -%}
{%- do parts.append(value ~ ' as ' ~ name(column.name)) -%}
{%- endfor -%}
struct(
    {{ parts | in_lines(4) }})
{%- endmacro -%}

{#- The text that is known of a column. -#}
{%- macro told_value(column) -%}
{%- set told -%} told[{{ text(column.name) }}] {%- endset -%}
{%- if column.added_with is not none and not column.has_default -%} if(map_contains_key(told, {{ text(column.name) }}) or not coalesce(array_contains(unlisted, {{ text(column.name) }}), false), {{ told }}, {{ text(column.added_with) }})
{%- elif column.default is not none -%} if(map_contains_key(told, {{ text(column.name) }}), {{ told }}, {{ text(column.default) }}) {%- else -%} {{ told }} {%- endif -%}
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
{%- macro state_whole(mirror, found) -%}
{{ known_of(mirror, found=found) }}

{{ with_fate(mirror, 'known') }}
{%- endmacro -%}

{%- macro state_beside(mirror, whole) -%}
select {{ key_columns_of(mirror, '_row_key') }}, _seq as _known_until, _changed_at as _known_at, _in_parts from {{ name(whole) }} where _is_gone
{%- endmacro -%}

{%- macro state_rows(mirror, whole) -%}
select {{ mirror.state_columns | map('name') | join(', ') }} from {{ name(whole) }} where not _is_gone
{%- endmacro -%}

{#- The rows that new changes tell of, typed, each with what is to be done with it: `take` it as they say, since they tell all of it and come after what is
    known; lay the columns that they tell `over` it; or look at all of its changes `again`, since they tell columns of a row that is gone, or nobody knows
    without them what comes first. Those that come before what is known are not there. `new` is the mirror as it reads only the new changes.

    While all changes are numbered in one log, and none has told parts of a row, the rows of the table need not be looked up: the newest change counts, which
    the merge sees. -#}
{%- macro state_decided(mirror, new, table, gone, found) -%}
{%- set looks_up = found.has_parts or found.numbered_in is none -%}
{{ known_of(new, found=found) }},

looked_up as (
  select one.* except (newest), gone._known_until as gone_until
    {%- if looks_up %},
    if(own._source is null, null, struct(own.*)) as own_row,
    coalesce(own._seq, gone._known_until) as known_until,
    coalesce(own._in_parts, gone._in_parts, false) as known_in_parts,
    is_in_doubt(one.first_arrived, one.newest.place, one.goes_back_to, coalesce(own._seq, gone._known_until), if(own._source is null, gone._known_at, own._changed_at)) as is_in_doubt,
    struct({{ place_after('one.newest.place', 'one.first_arrived') }} as place, one.newest.source, one.newest.changed_at, one.newest.removes) as newest
    {%- else %},
    one.newest
    {%- endif %}
  from known as one
  {%- if looks_up %}
  left join {{ table }} as own on {{ key_matches(mirror, 'own', found, 'one.row_key') }}
  {%- endif %}
  left join (
    select {{ key_columns_of(mirror, 'gone') }}, max(_known_until) as _known_until, max_by(_in_parts, _known_until) as _in_parts, max_by(_known_at, _known_until) as _known_at
    from {{ gone }} as gone
    where {{ in_bounds(mirror, 'gone', found) }}
    group by {{ key_columns_of(mirror, 'gone') }}
  ) as gone on {{ key_matches(mirror, 'gone', found, 'one.row_key') }}
),
decided as (
  select *,
    {% if found.has_parts -%}
    case
      when is_in_doubt then 'again'
      when known_until is null and newest_whole is not null then 'take'
      when {{ place_after('newest_whole', 'first_arrived', 'known_until') }} > known_until then 'take'
      when own_row is not null and newest_whole is null and {{ place_after('first_part', 'first_arrived', 'known_until') }} > known_until then 'over'
      when newest.place <= known_until and not known_in_parts then 'leave'
      else 'again' end
    {%- elif looks_up -%}
    case when is_in_doubt then 'again' when newest.place <= known_until then 'leave' else 'take' end
    {%- else -%}
    if(newest.place < gone_until, 'leave', 'take')
    {%- endif %} as decision
  from looked_up
)

{{ with_fate(mirror, "(select * from decided where decision <> 'leave')", "decision = 'over'" if found.has_parts else '', 'decision') }}
{%- endmacro -%}

{#- The place of a new change, whose stretches are counted from the first of them, among all changes. -#}
{%- macro place_after(place, first_arrived, known='coalesce(own._seq, gone._known_until)') -%} place_after({{ place }}, {{ first_arrived }}, {{ known }}) {%- endmacro -%}

{#- `beside`: how many of the rows are, or may be, to be remembered as gone. -#}
{%- macro state_decisions(decided) -%}
select count(*) as changed, count_if(_decision = 'again') as again, count_if(_is_gone or _decision = 'again') as beside from {{ name(decided) }}
{%- endmacro -%}

{#- The rows that change, typed, where some must be looked at again. -#}
{%- macro state_changed(mirror, decided, found) -%}
{{ known_of(mirror, found=found) }}

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
{%- macro is_kept(mirror) -%} coalesce({{ bracketed(mirror.where) if mirror.where else 'true' }}, false) {%- endmacro -%}

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
insert into {{ gone }} ({{ mirror.key | map('name') | join(', ') }}, _known_until, _known_at, _in_parts)
select {{ key_columns_of(mirror, '_row_key') }}, _seq, _changed_at, _in_parts from {{ name(changed) }} where _is_gone
{%- endmacro -%}

{%- macro state_merged(mirror, table, changed, bounds) -%}
{%- set columns = mirror.state_columns -%}
{%- set is_not_older = 'new._seq >= own._seq' -%}
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
  count_if(meta['rowid'] is null) as without_rowid,
  count_if(op = 'update' and after_image in ('partial', 'key', 'patch')) as partial,
  max_by(map_keys(key), struct(batch, seq)) filter (where key is not null) as key_columns
from {{ name(changelog) }}
where {{ changes_seen(source, table) }}
group by all
order by all
{%- endmacro -%}

{#- The columns in the images of these tables: their types, and how many values do not fit those of SQL. The newest whole row of a message that names types
    has all columns but those that are told later. -#}
{%- macro columns_seen(changelog, source, table, tried) -%}
with whole as (
  select source, {{ table_of_row() }} as names, max(struct(batch, seq)) as newest_whole
  from {{ name(changelog) }}
  where types is not null and (after_image = 'full' or op = 'delete' and before_image = 'full') and {{ changes_seen(source, table) }}
  group by all
)
select
  source, names, column,
  max_by(type, place) filter (where type is not null) as type,
  {%- for type in tried %}
  count_if(value is not null and {{ typed('value', type) }} is null) as unfit_{{ type }},
  {%- endfor %}
  count_if(value not rlike '^[+-]?[0-9]+([.][0-9]*)?$') as no_numbers,
  max(length(regexp_extract(value, '^[+-]?0*([0-9]*)', 1))) as integer_digits,
  max(length(regexp_extract(value, '[.]([0-9]*?)0*$', 1))) as fraction_digits,
  max_by(nth, place) as nth,
  coalesce(max(place) < any_value(newest_whole), false) as is_gone
from (
  select source, {{ table_of_row() }} as names, struct(batch, seq) as place, types[column] as type, column, value, nth
  from {{ name(changelog) }}
  lateral view posexplode(map_entries(coalesce(after, before))) as nth, entry
  lateral view explode(array(entry.key)) as column
  lateral view explode(array(entry.value)) as value
  where {{ changes_seen(source, table) }}
) left join whole using (source, names)
group by all
order by source, names, nth
{%- endmacro -%}

{%- macro table_of_row() -%} array_compact(array(tenant, db_name, schema_name, table_name)) {%- endmacro -%}
