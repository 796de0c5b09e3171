{#- Mirrors: a table as it is in its database, made of its changes. Where there are several ways, the mirror and its query (runner/project/mirror.py) name the
    macro, or list what is printed. -#}

{%- macro mirror_state(query) -%}
-- {{ query.mirror.name }}: {{ query.mirror.tables | each('table_in_words') | join(', then ') }}, each row as it is now
{% call macro('kept_' ~ query.mirror.ways.keeps)(query.mirror) -%}
{{ changes_of(query) }},

-- The rows that are there, typed.
typed as (
  select newest, in_parts, told, unlisted, only_parts, {{ row_alone(query.mirror) }} as row
  from known
  {{ macro('there_as_' ~ query.mirror.ways.rows)() }}
)

select
  {{ shown_alone(query.mirror) }}
from typed
{%- endcall %}
{%- endmacro -%}

{%- macro there_as_rows() -%} where not newest.removes {%- endmacro -%}
{%- macro there_as_copies() -%} lateral view explode(if(copies > 0, sequence(1, copies), array())) as copy {%- endmacro -%}

{#- Only the rows that a mirror is to have, and whether it is to have a row. -#}
{%- macro kept_all(mirror) -%} {{ caller() }} {%- endmacro -%}
{%- macro kept_where(mirror) -%}
select * from (
{{ caller() }}
)
where {{ bracketed(mirror.where) }}
{%- endmacro -%}
{%- macro is_kept_all(mirror) -%} coalesce(true, false) {%- endmacro -%}
{%- macro is_kept_where(mirror) -%} coalesce({{ bracketed(mirror.where) }}, false) {%- endmacro -%}

{#- Columns beside those that a step always has. -#}
{%- macro more_columns(columns, of) -%}
{% for column in columns %},
    {{ macro('column_' ~ column)(of) }}
{%- endfor %}
{%- endmacro -%}

{%- macro step_known(step, query) %}
-- What is known of each row that was ever there.
known as (
  select
    {{ macro('key_known_' ~ query.mirror.ways.key)(query.mirror) }},
    max_by(struct(place, source, changed_at, removes), place) as newest,
    min_by(place, arrived) as first_arrived,
    min(if(numbered_in is null, changed_at, null)) as goes_back_to
    {{- more_columns(step.columns, query.mirror) }}
  from changes
  {%- for nth in query.emptied %}
  where {{ nth }} is null
  {%- endfor %}
  group by {{ columns_of_row(query.mirror) }}
)
{%- endmacro -%}

{%- macro key_known_columns(mirror) -%} struct({% for column in mirror.key %}row_key.{{ name(column) }} as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}) as row_key {%- endmacro -%}
{%- macro key_known_value(mirror) -%} row_key {%- endmacro -%}

{%- macro column_copies_known(mirror) -%} sum(copies) as copies {%- endmacro -%}
{%- macro column_told_newest_rows(mirror) -%} max_by(told, place) as told {%- endmacro -%}
{%- macro column_told_newest_copies(mirror) -%} max_by(told, place) filter (where not removes) as told {%- endmacro -%}
{%- macro column_no_parts(mirror) -%} false as only_parts, false as in_parts {%- endmacro -%}
{%- macro column_parts(mirror) -%}
max(place) filter (where is_whole) as newest_whole,
    min(place) filter (where not is_whole) as first_part,
    coalesce(
      max(place) filter (where not is_whole) > max(place) filter (where is_whole),
      max(place) filter (where not is_whole) is not null) as in_parts
{%- endmacro -%}
{%- macro column_only_parts(mirror) -%} not bool_or(is_whole) as only_parts {%- endmacro -%}
{%- macro column_unlisted_newest(mirror) -%} max_by(unlisted, place) as unlisted {%- endmacro -%}
{%- macro column_unlisted_whole(mirror) -%} max_by(unlisted, place) filter (where is_whole) as unlisted {%- endmacro -%}
{%- macro column_unlisted_never(mirror) -%} cast(null as array<string>) as unlisted {%- endmacro -%}

{#- What is known of a row after the changes that tell all of it and parts of it. -#}
{%- macro column_told_in_parts(mirror) -%}
{%- set is_image -%} {{ macro('is_image_of_' ~ mirror.ways.rows)() }} {%- endset -%}
known_columns(
      max_by(told, place) filter (where {{ is_image }}),
      max(place) filter (where {{ is_image }}),
      collect_list(struct(place, told)) filter (where not is_whole)) as told
{%- endmacro -%}

{#- The same, and after statements that changed its columns. -#}
{%- macro column_told_and_rewritten(mirror) -%}
{%- set is_image -%} {{ macro('is_image_of_' ~ mirror.ways.rows)() }} {%- endset -%}
aggregate(
      array_sort(
        filter(collect_list(struct(place, told, later)) filter (where not is_whole), p -> coalesce(p.place > max(place) filter (where {{ is_image }}), true)),
        (a, b) -> case when a.place < b.place then -1 when a.place > b.place then 1 else 0 end),
      coalesce(max_by(struct(told, later), place) filter (where {{ is_image }}), struct(cast(map() as map<string,string>) as told, cast(array() as array<int>) as later)),
      (known, p) -> struct(map_concat({{ rewritten('known.told', 'array_except(known.later, p.later)', 'any_value(effects)') }}, p.told) as told, p.later as later),
      known -> {{ rewritten('known.told', 'known.later', 'any_value(effects)') }}) as told
{%- endmacro -%}

{%- macro is_image_of_rows() -%} is_whole {%- endmacro -%}
{%- macro is_image_of_copies() -%} is_whole and not removes {%- endmacro -%}

{%- macro shown_state(mirror, untold, unfit) -%}
{{ columns_shown(mirror, ['newest.changed_at as _changed_at', 'newest.place as _seq', 'newest.source as _source', 'in_parts as _in_parts', untold ~ ' as _untold', unfit ~ ' as _unfit']) }}
{%- endmacro -%}
{%- macro shown_alone(mirror) -%}
{%- set untold -%} untold_columns({{ columns_unlisted(mirror) }}, told) {%- endset -%}
{{ shown_state(mirror, untold, unfit_alone(mirror)) }}
{%- endmacro -%}
{#- Laid over a row: columns that are not told are those of `own_row`, where `over` is true. -#}
{%- macro shown_over(mirror, over) -%}
{%- set untold -%} untold_columns(if({{ over }}, coalesce(own_row._untold, array()), {{ columns_unlisted(mirror) }}), told) {%- endset -%}
{{ shown_state(mirror, untold, unfit_over(mirror, over)) }}
{%- endmacro -%}

{#- The columns that the table has and of which nobody knows what the row has, without those that rows have a default of that were there before them. -#}
{%- macro columns_unlisted(mirror) -%} if(only_parts, {{ other_columns(mirror) }}, {{ macro('unlisted_but_' ~ mirror.ways.defaults)(mirror) }}) {%- endmacro -%}
{%- macro unlisted_but_none(mirror) -%} unlisted {%- endmacro -%}
{%- macro unlisted_but_added(mirror) -%} array_except(unlisted, array({{ mirror.columns | rejectattr('added_with', 'none') | map(attribute='name') | map('sql_text') | join(', ') }})) {%- endmacro -%}

{#- The defaults of columns, each as the first message with the column names it: rows that were there before have that one, whatever comes later. There is
    none of a column that comes when another one goes, which may be the same with a new name, and none that is empty, which may stand for an expression. -#}
{%- macro defaults_told(mirror) -%}
with
{{ told_with(mirror, ['defaults', 'listed'] + mirror.sent_columns[1:]) }},

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
cast(array({{ mirror.columns | rejectattr('is_key') | rejectattr('has_default') | map(attribute='name') | map('sql_text') | join(', ') }}) as array<string>)
{%- endmacro -%}

{#- What must be looked at before a mirror is built: one row with the columns that it does not have, whatever the case of their letters, how many changes do
    not tell the key, whether some tell only parts of a row, in which log they are numbered, if all are in one, and by how many numbers; and the columns that rows of each dump tell. -#}
{%- macro mirror_findings(mirror, shown='', counted='') -%}
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
  {%- for rank, table in mirror.dumps %},
  told_by_{{ rank }}
  {%- endfor %}
  {{- shown }}
from (
  select
    array_sort(array_distinct(flatten(collect_set(map_keys(coalesce(after, before)))))) as columns,
    {{ macro('number_rejected_' ~ mirror.ways.rejects)(mirror) }} as without_key,
    coalesce(bool_or(not ({{ tells_whole_row() }})), false) as tells_parts,
    count_if(numbered_in is null) as without_numbers, min(numbered_in) as first_log, max(numbered_in) as last_log, max(size(seq.position)) as numbers
    {%- for rank, table in mirror.dumps %},
    array_distinct(flatten(collect_set(if(rank = {{ rank }}, map_keys(after), null)))) as told_by_{{ rank }}
    {%- endfor %}
    {{- counted }}
  from keyed
)
{%- endmacro -%}

{#- The same of new changes, which a table is to take in; also how many tell the key, and the first and the last value of each of its columns. -#}
{%- macro increment_findings(mirror) -%}
{%- set shown -%}
,
  with_key
  {%- for column in mirror.key %},
  cast(first_{{ loop.index0 }} as string) as first_{{ loop.index0 }},
  cast(last_{{ loop.index0 }} as string) as last_{{ loop.index0 }}
  {%- endfor %}
{%- endset -%}
{%- set counted -%}
,
    count_if({{ tells_key(mirror, 'key_after') }} or {{ tells_key(mirror, 'key_before') }}) as with_key
    {%- for column in mirror.key %},
    least(min(key_before.{{ name(column) }}), min(key_after.{{ name(column) }})) as first_{{ loop.index0 }},
    greatest(max(key_before.{{ name(column) }}), max(key_after.{{ name(column) }})) as last_{{ loop.index0 }}
    {%- endfor %}
{%- endset -%}
{{ mirror_findings(mirror, shown, counted) }}
{%- endmacro -%}

{%- macro number_rejected_unkeyed(mirror) -%} count_if(not ({{ tells_key(mirror, 'key_after') }})) {%- endmacro -%}
{%- macro number_rejected_none(mirror) -%} 0 {%- endmacro -%}
{%- macro number_rejected_all(mirror) -%} count(*) {%- endmacro -%}

{#- The statements that may have changed what rows tables have, or what is in them. -#}
{%- macro statements_told(models) -%} {{ models | each('statements_of_model') | join('\nunion all\n') }} {%- endmacro -%}
{%- macro statements_of_model(told) -%}
{%- set model, after = told -%}
select
  source, batch, op, statement, tenant, db_name, schema_name, table_name, meta, seq.generation, transform(seq.position, n -> cast(n as string)) as position,
  {{ numbered_in('named') }} as numbered_in, unix_micros({{ written_at() }}) as sent_at, {{ log_of_origin() }} as log, seq.arrival, unix_micros({{ known_time() }}) as at, unix_micros(event_time) as happened_at
from {{ name(model) }}
where kind = 'ddl' and op in ('create', 'alter', 'drop', 'truncate', 'rename', 'other'){{ after | each('comes_after') | join }}
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
{%- macro tables_named(model, called) -%}
select distinct {{ table_of_row() }} as names from {{ name(model) }} where kind = 'row' and {{ is_of_table(called) }} limit 2
{%- endmacro -%}

{#- What statements did to the table of a mirror, in their order, each with its number; and the statements that cannot be followed. -#}
{%- macro statement_effects(effects) -%} {{ effects | each('statement_effect') | join('\nunion all\n') }} {%- endmacro -%}
{%- macro statement_effect(effect) -%}
{%- set nth, one = effect -%}
{%- set row = one.row -%}
select
  {{ nth }} as nth, {{ one.rank }} as rank, {{ one.called }} as called, {{ one.earlier }} as earlier, {{ row.generation }} as generation, cast(array({{ one.position | join(', ') }}) as array<decimal(38,0)>) as position, {{ given_text(row.numbered_in) }} as numbered_in,
  {{ given_instant(row.sent_at) }} as sent_at, {{ given_text(row.log) }} as log, cast(array({{ row.arrival | join(', ') }}) as array<bigint>) as arrival, {{ given_instant(row.at) }} as at, {{ given_instant(row.happened_at) }} as happened_at,
  {{ one.empties | lower }} as empties, {{ given_map(one.told) }} as told, {{ given_map(one.renamed) }} as renamed
{%- endmacro -%}
{%- macro no_effects() -%}
{{ no_rows({'nth': 'int', 'rank': 'int', 'called': 'int', 'earlier': 'int', 'generation': 'int', 'position': 'array<decimal(38,0)>', 'numbered_in': 'string', 'sent_at': 'timestamp', 'log': 'string', 'arrival': 'array<bigint>', 'at': 'timestamp', 'happened_at': 'timestamp', 'empties': 'boolean', 'told': 'map<string,string>', 'renamed': 'map<string,string>'}) }}
{%- endmacro -%}
{%- macro lost_statements(lost) -%} {{ lost | each('lost_statement') | join('\nunion all\n') }} {%- endmacro -%}
{%- macro lost_statement(one) -%}
select {{ text(one.source) }} as source, {{ one.batch }} as batch, {{ text(one.statement) }} as statement, {{ text(one.why) }} as why, {{ given_instant(one.at) }} as at
{%- endmacro -%}
{%- macro none_lost() -%} {{ no_rows({'source': 'string', 'batch': 'bigint', 'statement': 'string', 'why': 'string', 'at': 'timestamp'}) }} {%- endmacro -%}
{%- macro given_text(value) -%} {{ 'cast(null as string)' if value is none else text(value) }} {%- endmacro -%}
{%- macro given_instant(value) -%} {{ 'cast(null as timestamp)' if value is none else 'timestamp_micros(' ~ value ~ ')' }} {%- endmacro -%}
{%- macro given_map(entries) -%}
cast(map({% for key, value in entries.items() %}{{ text(key) }}, {{ given_text(value) }}{{ ', ' if not loop.last }}{% endfor %}) as map<string,string>)
{%- endmacro -%}

{#- What has messages in one order: a partition of a topic, or a file. -#}
{%- macro log_of_origin() -%} coalesce(concat(origin.topic, '/', origin.partition), origin.file) {%- endmacro -%}
{%- macro written_at() -%} coalesce(produced_at, origin.timestamp) {%- endmacro -%}
{#- In which log the numbers of a message count, which messages name or not; null if it has none. -#}
{%- macro numbered_in(log) -%} if(size(seq.position) = 0, null, {{ macro('log_' ~ log)() }}) {%- endmacro -%}
{%- macro log_named() -%} coalesce(meta['log'], '') {%- endmacro -%}
{%- macro log_unnamed() -%} '' {%- endmacro -%}

{%- macro tells_key(mirror, row) -%} {{ mirror.key | each('is_told', row) | join(' and ') }} {%- endmacro -%}
{%- macro is_told(column, row) -%} {{ row }}.{{ name(column) }} is not null {%- endmacro -%}

{#- Of a change that removes no row. -#}
{%- macro tells_whole_row() -%} op <> 'update' or after_image = 'full' or moved {%- endmacro -%}

{#- For a comment, which ends with its line. -#}
{%- macro table_in_words(table) -%} {{ table.name | join('.') | replace('\n', ' ') | replace('\r', ' ') }} of source {{ table.source.name }} {%- endmacro -%}

{#- The rows of the changelog that are of the table. -#}
{%- macro told_of(mirror) -%} {{ told_with(mirror, mirror.sent_columns) }} {%- endmacro -%}
{%- macro told_with(mirror, columns) -%}
-- The changes of the table, with the names that its columns have here.
sent as (
  select rank, source, batch, op, seq, numbered_in, sent_at, log{{ also(mirror.called_columns) }}, event_time, produced_at, valid_from, after_image
    {{- more_columns(columns, mirror) }},
    transform(changed, c -> coalesce(names[lower(c)], c)) as changed,
    {% for image, meta in mirror.images.items() %}named_as({{ macro('image_' ~ meta)(image, mirror.meta_names) }}, names) as {{ image }}{{ ', ' if not loop.last }}{% endfor %}
  from (
    {{ mirror.called | each('rows_called', mirror) | join('\n    union all\n    ') }}
  )
)
{%- endmacro -%}

{%- macro rows_called(one, mirror) -%}
{%- set rank, table, number, called = one -%}
select {{ rank }} as rank, *, {{ numbered_in(table.ways.log) }} as numbered_in, {{ written_at() }} as sent_at, {{ log_of_origin() }} as log, {{ known_time() }} as valid_from,
      map({{ mirror.sent_names | each('name_sent') | in_lines(8) }}) as names
      {{- macro('name_of_' ~ mirror.ways.names)(number, called) }}
    from {{ macro('rows_read_' ~ table.ways.reads)(table) }}
    where kind = 'row' and {{ is_of_table(called) }}
      and not (op = 'update' and after_image = 'none'){{ macro('told_to_' ~ table.ways.told)(mirror) }}{{ table.after | each('comes_after') | join }}
{%- endmacro -%}

{%- macro told_to_all_mirrors(mirror) -%} {%- endmacro -%}
{#- Repairs are of one mirror: another one of the same table may have other rows and columns. -#}
{%- macro told_to_one_mirror(mirror) %}
      and meta['record_type'] {{ 'in (' ~ (mirror.all_names | map('sql_text') | join(', ')) ~ ')' if mirror.renamed_from else '= ' ~ text(mirror.name) }}
{%- endmacro -%}

{#- That a change is not in a dump that was taken at a place in the log. Where nothing tells, it is not in it. -#}
{%- macro comes_after(place) %}
      and not coalesce({{ macro('is_until_' ~ place.kind)(place) }}, false)
{%- endmacro -%}
{%- macro is_until_numbers(place) -%}
{%- set number = place.numbers | length -%}
size(seq.position) >= {{ number }} and slice(seq.position, 1, {{ number }}) <= cast(array({{ place.numbers | join(', ') }}) as array<decimal(38,0)>)
{%- for log in place.logs %} and coalesce(meta['log'], {{ text(log) }}) = {{ text(log) }}{% endfor -%}
{%- endmacro -%}
{%- macro is_until_ids(place) -%}
exists(
        array(
          {{ place.ids | each('interval_of_ids') | in_lines(10) }}),
        known -> known.server = lower(regexp_extract(meta['gtid'], '^(.*?)(?::|-[0-9]+-)[0-9]+$', 1))
          and try_cast(regexp_extract(meta['gtid'], '[0-9]+$', 0) as bigint) between known.first and known.last)
{%- endmacro -%}
{%- macro interval_of_ids(ids) -%} named_struct('server', {{ text(ids[0]) }}, 'first', {{ ids[1] }}L, 'last', {{ ids[2] }}L) {%- endmacro -%}
{#- The numbers of transactions have 32 bits in a log, and go round. -#}
{%- macro is_until_transactions(place) -%}
pmod({{ transaction_number() }} - {{ place.until }}, 4294967296) >= 2147483648
        and not array_contains(cast(array({{ place.open | each('transaction_in_32_bits') | join(', ') }}) as array<bigint>), pmod({{ transaction_number() }}, 4294967296))
{%- endmacro -%}
{%- macro transaction_number() -%} try_cast(regexp_extract(tx_id, '^[0-9]+', 0) as bigint) {%- endmacro -%}
{%- macro transaction_in_32_bits(number) -%} {{ number % 4294967296 }}L {%- endmacro -%}
{%- macro is_until_time(place) -%} event_time <= timestamp_micros({{ place.time }}) {%- endmacro -%}

{%- macro name_of_one_name(number, called) -%} {%- endmacro -%}
{%- macro name_of_several_names(number, called) -%} , {{ number }} as called, {{ called.since }} as called_since, {{ called.until }} as called_until {%- endmacro -%}

{#- A name under which a column may be sent, in small letters, with the name that it stands for. -#}
{%- macro name_sent(names) -%} {{ names | map('sql_text') | join(', ') }} {%- endmacro -%}
{%- macro also(columns) -%} {% for column in columns %}, {{ column }}{% endfor %} {%- endmacro -%}

{#- The changelog that has the changes of a table, with halves of updates joined, or the view of those that are to be read. -#}
{%- macro rows_read_as_landed(table) -%} {{ name(table.rows | default(table.source.model, true)) }} {%- endmacro -%}
{%- macro rows_read_with_halves_joined(table) -%} ({{ view_changelog([table.source]) | indent(4) }}) {%- endmacro -%}

{%- macro column_defaults(mirror) -%} named_as(from_json(meta['defaults'], 'map<string,string>'), names) as defaults {%- endmacro -%}
{%- macro column_listed(mirror) -%} array_sort(map_keys(named_as(types, names))) as listed {%- endmacro -%}
{%- macro column_unlisted(mirror) -%} array_except({{ other_columns(mirror) }}, map_keys(named_as(types, names))) as unlisted {%- endmacro -%}

{#- An image, with what `meta` has: before a change that gives a row another id, the old one. -#}
{%- macro image_alone(image, names) -%} {{ image }} {%- endmacro -%}
{%- macro image_with_new(image, names) -%} map_concat({{ image }}, map({{ names | each('meta_new') | join(', ') }})) {%- endmacro -%}
{%- macro image_with_old(image, names) -%} map_concat({{ image }}, map({{ names | each('meta_old') | join(', ') }})) {%- endmacro -%}
{%- macro meta_new(name) -%} {{ text('meta.' ~ name) }}, {{ beside_images(name) }} {%- endmacro -%}
{%- macro meta_old(name) -%} {{ text('meta.' ~ name) }}, coalesce(meta[{{ text('old_' ~ name) }}], {{ beside_images(name) }}) {%- endmacro -%}
{#- What a change tells beside its images: the name of its table, or a value in `meta`. -#}
{%- macro beside_images(name) -%}
{{ {'table': "array_join(" ~ table_of_row() ~ ", '.')"}[name] | default('meta[' ~ text(name) ~ ']') }}
{%- endmacro -%}

{#- The identity of the row after a change and before it, and whether they differ. -#}
{%- macro keyed_of(mirror) -%}
-- {{ mirror.keyed_comment }}
keyed as (
  select *, {{ macro('keys_by_' ~ mirror.ways.by)(mirror) }}
  from sent
)
{%- endmacro -%}
{%- macro keys_by_key(mirror) -%}
struct({% for column in mirror.key_columns %}{{ typed(sent_key_after(column.name), column.type) }} as {{ name(column.name) }}{{ ', ' if not loop.last }}{% endfor %}) as key_after,
    struct({% for column in mirror.key_columns %}coalesce({{ typed(sent_key_before(column.name), column.type) }}, key_after.{{ name(column.name) }}) as {{ name(column.name) }}{{ ', ' if not loop.last }}{% endfor %}) as key_before,
    op = 'update' and key_before <> key_after as moved
{%- endmacro -%}
{%- macro keys_by_row(mirror) -%}
struct({{ declared_text(mirror, 'if(op = \'delete\', before, after)') }} as row) as key_after,
    struct({{ declared_text(mirror, 'before') }} as row) as key_before,
    op = 'update' and coalesce(key_before <> key_after, false) as moved
{%- endmacro -%}
{%- macro keys_by_change(mirror) -%} struct(rank, seq) as key_after, key_after as key_before, false as moved {%- endmacro -%}
{%- macro keys_by_nothing(mirror) -%} {{ keys_by_change(mirror) }} {%- endmacro -%}

{%- macro declared_text(mirror, image) -%}
to_json(map_from_entries(array_sort(map_entries({{ declared_part(mirror, image) }}))))
{%- endmacro -%}
{%- macro declared_part(mirror, image) -%}
map_filter({{ image }}, (c, v) -> c in ({{ mirror.columns | map(attribute='name') | map('sql_text') | join(', ') }}))
{%- endmacro -%}

{#- The text of a column of the key after a change, and before it. -#}
{%- macro sent_key_after(column) -%} coalesce(key[{{ text(column) }}], if(op = 'delete', before, after)[{{ text(column) }}], before[{{ text(column) }}]) {%- endmacro -%}
{%- macro sent_key_before(column) -%} coalesce(old_key[{{ text(column) }}], before[{{ text(column) }}]) {%- endmacro -%}

{#- The best that is known of when a change was made. -#}
{%- macro known_time() -%} coalesce(event_time, produced_at, origin.timestamp) {%- endmacro -%}

{#- By a name of the table, of which the first parts may be missing. -#}
{%- macro is_of_table(called) -%} table_name = {{ text(called.name[-1]) }}{{ macro('of_table_' ~ called.depth)(called.name[:-1]) }} {%- endmacro -%}
{%- macro of_table_anywhere(parts) -%} {%- endmacro -%}
{%- macro of_table_in_one(parts) %} and coalesce(schema_name, db_name) = {{ text(parts[0]) }} {%- endmacro -%}
{%- macro of_table_in_several(parts) %} and slice(array_compact(array(tenant, db_name, schema_name)), -{{ parts | length }}, {{ parts | length }}) = array({{ parts | map('sql_text') | join(', ') }}) {%- endmacro -%}

{#- The changes, each with its place and with the statements after it; for a state then what is known of each row. -#}
{%- macro changes_of(query) -%}
with
{{ told_of(query.mirror) }},

{{ keyed_of(query.mirror) }},
{{ query.steps | each('step_of', query) | join(',\n') }}
{%- endmacro -%}
{%- macro step_of(step, query) -%} {{ macro('step_' ~ step.name)(step, query) }} {%- endmacro -%}

{%- macro step_told_changes(step, query) %}
-- What each change does to a row: it removes it, or tells all of its columns, or some.
told_changes as (
  select
    source, op, event_time as changed_at, valid_from, removes,
    if(removes, key_before, key_after) as row_key,
    removes or {{ tells_whole_row() }} as is_whole
    {{- more_columns(step.columns, query.mirror) }},
    case
      when removes then map()
      when moved then map_concat(coalesce(before, map()), after)
      when after_image = 'patch' then told_columns(after, changed)
      else coalesce(after, map()) end as told,
    rank, seq.generation, seq.phase, load_text({{ macro('rank_of_' ~ query.mirror.ways.names)() }}, seq.generation, seq.phase) as load, numbered_in, seq.position,
    sent_at, produced_at, log, seq.arrival, seq.row as row_index{{ also(query.mirror.called_columns) }}
  from keyed
  lateral view explode(case when moved then array(true, false) when op = 'delete' then array(true) else array(false) end) as removes
  where {{ macro('has_row_by_' ~ query.mirror.ways.by)(query.mirror) }}
  {%- for share in query.shares %}
    and {{ is_sampled('if(removes, key_before, key_after)', share) }}
  {%- endfor %}
)
{%- endmacro -%}

{%- macro column_copies(mirror) -%} case when removes then -1 when op = 'update' and not moved then 0 else 1 end as copies {%- endmacro -%}
{%- macro column_still_unlisted(mirror) -%}
-- Also of a row that is told as new without all its columns: what was not logged when its key changed. The empty name marks it.
    if(after_image in ('partial', 'key') and not removes and (op <> 'update' or moved),
      array_union(array_append(coalesce(unlisted, array()), ''), array_except({{ other_columns(mirror) }}, map_keys(if(moved, map_concat(coalesce(before, map()), after), after)))),
      unlisted) as unlisted
{%- endmacro -%}

{%- macro rank_of_one_name() -%} rank {%- endmacro -%}
{%- macro rank_of_several_names() -%} 1000 * rank - called {%- endmacro -%}

{%- macro has_row_by_key(mirror) -%} {{ tells_key(mirror, 'if(removes, key_before, key_after)') }} {%- endmacro -%}
{%- macro has_row_by_row(mirror) -%} {{ is_told('row', 'if(removes, key_before, key_after)') }} {%- endmacro -%}
{%- macro has_row_by_change(mirror) -%} op <> 'delete' {%- endmacro -%}
{%- macro has_row_by_nothing(mirror) -%} false {%- endmacro -%}

{#- Whether a key is among those that are looked at today. -#}
{%- macro is_sampled(key, share) -%} pmod(xxhash64({{ key }}, current_date()), 1000000) < {{ share }} * 1000000 {%- endmacro -%}

{#- The order of the changes of each row (docs/changelog.md): what was told last wins. Each has a `place`, which sorts as they follow each other, and `arrived`,
    which sorts as they came.

    Where all changes are numbered in one log the numbers alone say it. Else the changes of a row, as they came, are cut into stretches where the log that
    numbers them changes; changes without numbers are stretches of their own. What came before is told again if it is the same change, and is left out. -#}
{%- macro step_ordered_by_numbers(step, query) %}
-- In the order of their numbers.
{{ ordered('0', step, query, '(select *, arrival_text(sent_at, arrival, row_index, log) as arrived from ' ~ step.reads ~ ')') }}
{%- endmacro -%}

{%- macro step_came(step, query) -%}
{%- set row = columns_of_row(query.mirror) %}
-- As they came: within a log in its order, between logs by when they were sent.
came as (
  select *, arrival_text(told_at, arrival, row_index, log) as arrived, op = 'snapshot' and numbered_in is null and produced_at is not null as is_load_of_time
  from (
    select *, max(sent_at) over (partition by {{ row }}, load, log order by arrival, row_index rows between unbounded preceding and current row) as told_at
    from (select * from {{ step.reads }} distribute by {{ row }})
  )
)
{%- endmacro -%}

{%- macro step_told_once(step, query) -%}
{%- set row = columns_of_row(query.mirror) %}
-- Without those that are told again: numbers show it, or a time that goes back, or of a loaded row when it was sent.
told_once as (
  select * from (
    select *,
      row_number() over (
        partition by {{ row }}, load, xxhash64(numbered_in, position, changed_at, op, removes, map_keys(told), array_join(map_values(told), '\u0001', '\u0002'){{ also(step.columns) }}, if(is_load_of_time, produced_at, null))
        order by arrived) as times_told,
      changed_at < max(changed_at) over (partition by {{ row }}, load order by arrived rows between unbounded preceding and 1 preceding) as goes_back
    from {{ step.reads }}
  )
  where times_told = 1 or not coalesce(numbered_in is not null or is_load_of_time or goes_back, false)
)
{%- endmacro -%}

{%- macro step_named(step, query) -%}
-- A change whose log is not named is numbered in the one before it.
named as (
  select * except (numbered_in),
    if(numbered_in is null, null, coalesce(nullif(numbered_in, ''), last_value(nullif(numbered_in, ''), true) over (partition by {{ columns_of_row(query.mirror) }}, load order by arrived rows between unbounded preceding and current row), '')) as numbered_in
  from {{ step.reads }}
)
{%- endmacro -%}

{%- macro step_stretched(step, query) -%}
{%- set row = columns_of_row(query.mirror) -%}
-- Numbers are compared only where all changes between two are numbered in the same log.
stretched as (
  select *, cast(sum(if(is_cut, 1, 0)) over (partition by {{ row }}, load order by arrived rows between unbounded preceding and current row) as int) as stretch
  from (
    select *, lag(1) over so_far is not null and not numbered_in <=> lag(numbered_in) over so_far as is_cut
    from {{ step.reads }}
    window so_far as (partition by {{ row }}, load order by arrived)
  )
)
{%- endmacro -%}

{%- macro step_ordered_as_told(step, query) -%} {{ ordered('0', step, query, step.reads) }} {%- endmacro -%}
{%- macro step_ordered_in_stretches(step, query) %}
{{ ordered('stretch', step, query, step.reads) }}
{%- endmacro -%}

{%- macro ordered(stretch, step, query, rows) -%}
ordered as (
  select *, place_text(load, {{ stretch }}, numbered_in, position, op = 'snapshot', arrived) as place
    {{- more_columns(step.columns, query.mirror) }}
  from {{ rows }}
)
{%- endmacro -%}

{#- Where the stretches of a row begin: `told_at` is when what is in them was sent. -#}
{%- macro column_told_at(mirror) -%} sent_at as told_at {%- endmacro -%}
{%- macro column_one_stretch(mirror) -%} 0 as stretch, cast(array() as array<struct<told_at timestamp, arrival array<bigint>, log string>>) as begins {%- endmacro -%}
{%- macro column_stretches(mirror) -%}
collect_list(if(is_cut, struct(told_at, arrival, log), null)) over (partition by {{ columns_of_row(mirror) }}, load) as begins
{%- endmacro -%}

{%- macro step_effects(step, query) %}
-- What statements did to the table after each change, in their order.
effects as (
  select array_sort(
    collect_list(struct(nth, rank, called, earlier, generation, position, numbered_in, sent_at, log, arrival, at, happened_at, empties, told, renamed)),
    (a, b) -> a.nth - b.nth) as effects
  from {{ name(query.mirror.name ~ '__statements') }}
)
{%- endmacro -%}

{%- macro step_changes(step, query) -%}
changes as (
  select *, cast(array() as array<int>) as later from ordered
)
{%- endmacro -%}

{%- macro step_changes_and_statements(step, query) -%}
changes as (
  select * except (emptied, later), emptied.at as emptied_at,
    -- Those that it lived to see.
    filter(later, n -> coalesce(n < emptied.nth, true)) as later, emptied.nth as emptied_nth
  from (
    select *, get(filter(effects, e -> e.empties and array_contains(later, e.nth)), 0) as emptied
    from (
      select *, effects_after(effects, rank, {{ macro('called_by_' ~ query.mirror.ways.names)() }}, generation, phase, numbered_in, position, stretch, begins, struct(told_at, arrival, log), changed_at) as later
      from ordered cross join {{ step.reads }}
    )
    {{- macro('changes_of_' ~ query.mirror.ways.names)() }}
  )
)
{%- endmacro -%}

{%- macro called_by_one_name() -%} 0 {%- endmacro -%}
{%- macro called_by_several_names() -%} called {%- endmacro -%}
{#- Those of another table that has the name before or afterwards are none of them. -#}
{%- macro changes_of_one_name() -%} {%- endmacro -%}
{%- macro changes_of_several_names() %}
    where (called_since = 0 or not array_contains(later, called_since)) and (called_until = 0 or array_contains(later, called_until))
{%- endmacro -%}

{#- What tells a row from others: a key of several columns sorts slowly as one value. -#}
{%- macro columns_of_row(mirror) -%} {{ macro('row_by_' ~ mirror.ways.key)(mirror) }} {%- endmacro -%}
{%- macro row_by_columns(mirror) -%} {{ key_columns_of(mirror, 'row_key') }} {%- endmacro -%}
{%- macro row_by_value(mirror) -%} row_key {%- endmacro -%}

{#- An image after some of the statements: columns have other names, or other values. -#}
{%- macro rewritten(image, nths, effects) -%}
aggregate(filter({{ effects }}, e -> array_contains({{ nths }}, e.nth) and not e.empties), {{ image }}, (image, e) -> map_concat(
        map_from_entries(transform(filter(map_entries(image), c -> not map_contains_key(e.told, c.key)), c -> struct(coalesce(e.renamed[c.key], c.key) as key, c.value as value))), e.told))
{%- endmacro -%}

{#- The columns of the table, typed, in one column: their names may be those of other columns of a step. -#}
{%- macro row_alone(mirror, over='') -%}
struct(
    {{ mirror.columns | each('column_alone') | in_lines(4) }})
{%- endmacro -%}
{#- Laid over a row: columns that are not told are those of `own_row`, where `over` is true. -#}
{%- macro row_over(mirror, over) -%}
struct(
    {{ mirror.columns | each('column_over', over) | in_lines(4) }})
{%- endmacro -%}
{%- macro column_alone(column) -%} {{ macro('value_in_' ~ column.ways.place)(column) }} as {{ name(column.name) }} {%- endmacro -%}
{%- macro column_over(column, over) -%} {{ macro('value_over_' ~ column.ways.place)(column, over) }} as {{ name(column.name) }} {%- endmacro -%}
{%- macro value_in_key(column) -%} row_key.{{ name(column.name) }} {%- endmacro -%}
{%- macro value_in_row(column) -%}
{%- set sent -%} {{ macro('told_or_' ~ column.ways.untold)(column) }} {%- endset -%}
{{ typed(sent, column.type) }}
{%- endmacro -%}
{%- macro value_over_key(column, over) -%} {{ value_in_key(column) }} {%- endmacro -%}
{%- macro value_over_row(column, over) -%}
if({{ over }} and not map_contains_key(told, {{ text(column.name) }}), own_row.{{ name(column.name) }}, {{ value_in_row(column) }})
{%- endmacro -%}

{#- The text that is known of a column, or what rows have without it. -#}
{%- macro told_or_null(column) -%} told[{{ text(column.name) }}] {%- endmacro -%}
{%- macro told_or_default(column) -%} if(map_contains_key(told, {{ text(column.name) }}), told[{{ text(column.name) }}], {{ text(column.default) }}) {%- endmacro -%}
{%- macro told_or_added(column) -%}
if(map_contains_key(told, {{ text(column.name) }}) or not coalesce(array_contains(unlisted, {{ text(column.name) }}), false), told[{{ text(column.name) }}], {{ text(column.added_with) }})
{%- endmacro -%}

{#- The columns of a mirror: those of the table, then those that all mirrors have. -#}
{%- macro columns_shown(mirror, others) -%} {{ ((mirror.columns | map(attribute='name') | each('column_of', 'row')) + others) | in_lines(2) }} {%- endmacro -%}

{#- The values that are not in the typed columns though they were told; laid over a row, also those of `own_row`. -#}
{%- macro unfit_alone(mirror, over='') -%} {{ macro('unfit_of_' ~ mirror.ways.types)(mirror) }} {%- endmacro -%}
{%- macro unfit_over(mirror, over) -%} if({{ over }}, unfit_then(own_row._unfit, told, {{ macro('missing_of_' ~ mirror.ways.types)(mirror) }}), {{ unfit_alone(mirror) }}) {%- endmacro -%}
{%- macro unfit_of_texts(mirror) -%} cast(null as map<string,string>) {%- endmacro -%}
{%- macro missing_of_texts(mirror) -%} cast(null as array<string>) {%- endmacro -%}
{%- macro unfit_of_values(mirror) -%} unfit_columns(told, {{ missing_of_values(mirror) }}) {%- endmacro -%}
{%- macro missing_of_values(mirror) -%}
array(
    {{ mirror.columns | rejectattr('is_key') | rejectattr('type', 'equalto', 'string') | each('unfit_column') | in_lines(4) }})
{%- endmacro -%}
{%- macro unfit_column(column) -%} if(row.{{ name(column.name) }} is null, {{ text(column.name) }}, null) {%- endmacro -%}

{#- A text as a value of a type; null if it does not fit. -#}
{%- macro typed(value, type) -%}
{%- set ways = dict(string='sent', decimal='decimal', double='function', float='function', date='function', timestamp='function', timestamp_ntz='function', binary='function') -%}
{{ macro('typed_as_' ~ ways.get(type.partition('(')[0], 'cast'))(value, type) }}
{%- endmacro -%}
{%- macro typed_as_sent(value, type) -%} {{ value }} {%- endmacro -%}
{%- macro typed_as_function(value, type) -%} as_{{ type }}({{ value }}) {%- endmacro -%}
{%- macro typed_as_cast(value, type) -%} try_cast({{ value }} as {{ type }}) {%- endmacro -%}
{#- Not a cast alone, which rounds. -#}
{%- macro typed_as_decimal(value, type) -%}
if({{ value }} rlike '^[+-]?[0-9]*([.][0-9]{0,{{ type.split(',')[1][:-1] }}}0*)?$', try_cast({{ value }} as {{ type }}), null)
{%- endmacro -%}

{#- A mirror that takes in new changes. Beside its table is one of the rows that are gone, or that `where` leaves out: their keys, and up to which place they
    are known. A row that comes back stays there: what the mirror has of it counts. -#}

{#- Each row that was ever there, as all changes make it. -#}
{%- macro state_whole(query) -%}
{{ changes_of(query) }}

{{ with_fate(query.mirror, 'known', 'row_key', row_alone(query.mirror), shown_alone(query.mirror)) }}
{%- endmacro -%}

{%- macro state_beside(query, whole) -%}
select {{ key_columns_of(query.mirror, '_row_key') }}, _seq as _known_until, _changed_at as _known_at, _in_parts from {{ name(whole) }} where _is_gone
{%- endmacro -%}

{%- macro not_gone_counted() -%} cast(count_if(not _is_gone) as string) {%- endmacro -%}
{%- macro rows_not_gone(query, whole) -%} select {{ query.columns | map('name') | join(', ') }} from {{ name(whole) }} where not _is_gone {%- endmacro -%}

{#- The rows that new changes tell of, typed, each with what is to be done with it: `take` it as they say, since they tell all of it and come after what is
    known; lay the columns that they tell `over` it; or look at all of its changes `again`, since they tell columns of a row that is gone, or nobody knows
    without them what comes first. Those that come before what is known are not there. `new` is the query of the new changes alone.

    While all changes are numbered in one log, and none has told parts of a row, the rows of the table need not be looked up: the newest change counts, which
    the merge sees. -#}
{%- macro state_decided(new, table, gone) -%}
{{ changes_of(new) }},

looked_up as (
  select one.* except (newest), gone._known_until as gone_until,
    {{ macro('newest_by_' ~ new.ways.looks)() }}
  from known as one
  {{- macro('rows_by_' ~ new.ways.looks)(new, table) }}
  left join (
    select {{ key_columns_of(new.mirror, 'gone') }}, max(_known_until) as _known_until, max_by(_in_parts, _known_until) as _in_parts, max_by(_known_at, _known_until) as _known_at
    from {{ gone }} as gone
    where {{ in_bounds(new, 'gone') }}
    group by {{ key_columns_of(new.mirror, 'gone') }}
  ) as gone on {{ key_matches(new, 'gone', 'one.row_key') }}
),
decided as (
  select *,
    {{ macro('decision_by_' ~ new.ways.decides)() }} as decision
  from looked_up
)

{{ macro('fate_' ~ new.ways.laid)(new.mirror, "(select * from decided where decision <> 'leave')", 'decision') }}
{%- endmacro -%}

{%- macro rows_by_numbers(new, table) -%} {%- endmacro -%}
{%- macro newest_by_numbers() -%} one.newest {%- endmacro -%}
{%- macro rows_by_places(new, table) %}
  left join {{ table }} as own on {{ key_matches(new, 'own', 'one.row_key') }}
{%- endmacro -%}
{%- macro newest_by_places() -%}
if(own._source is null, null, struct(own.*)) as own_row,
    coalesce(own._seq, gone._known_until) as known_until,
    coalesce(own._in_parts, gone._in_parts, false) as known_in_parts,
    is_in_doubt(one.first_arrived, one.newest.place, one.goes_back_to, coalesce(own._seq, gone._known_until), if(own._source is null, gone._known_at, own._changed_at)) as is_in_doubt,
    struct({{ place_after('one.newest.place', 'one.first_arrived') }} as place, one.newest.source, one.newest.changed_at, one.newest.removes) as newest
{%- endmacro -%}

{%- macro decision_by_numbers() -%} if(newest.place < gone_until, 'leave', 'take') {%- endmacro -%}
{%- macro decision_by_places() -%} case when is_in_doubt then 'again' when newest.place <= known_until then 'leave' else 'take' end {%- endmacro -%}
{%- macro decision_by_parts() -%}
case
      when is_in_doubt then 'again'
      when known_until is null and newest_whole is not null then 'take'
      when {{ place_after('newest_whole', 'first_arrived', 'known_until') }} > known_until then 'take'
      when own_row is not null and newest_whole is null and {{ place_after('first_part', 'first_arrived', 'known_until') }} > known_until then 'over'
      when newest.place <= known_until and not known_in_parts then 'leave'
      else 'again' end
{%- endmacro -%}

{#- The place of a new change, whose stretches are counted from the first of them, among all changes. -#}
{%- macro place_after(place, first_arrived, known='coalesce(own._seq, gone._known_until)') -%} place_after({{ place }}, {{ first_arrived }}, {{ known }}) {%- endmacro -%}

{#- What is counted of the rows: those that change, those that must be looked at again, and those that are, or may be, to be remembered as gone. -#}
{%- macro state_decisions() -%}
to_json(struct(count(*) as changed, count_if(_decision = 'again') as again, count_if(_is_gone or _decision = 'again') as beside))
{%- endmacro -%}

{#- The rows that change, typed, where some must be looked at again. -#}
{%- macro state_changed(query, decided) -%}
{%- set again = '(select known.* from known left semi join ' ~ name(decided) ~ " as one on known.row_key = one._row_key and one._decision = 'again')" -%}
{{ changes_of(query) }}

select * from {{ name(decided) }} where _decision <> 'again'
union all
select * from (
  {{ fate_alone(query.mirror, again, "'again'") | indent(2) }}
)
{%- endmacro -%}

{#- Rows with all columns of the mirror, and whether it is not to have them. -#}
{%- macro fate_alone(mirror, rows, decision) -%} {{ with_fate(mirror, rows, decision ~ ' as _decision, row_key', row_alone(mirror), shown_alone(mirror)) }} {%- endmacro -%}
{%- macro fate_over(mirror, rows, decision) -%}
{%- set over = "decision = 'over'" -%}
{{ with_fate(mirror, rows, decision ~ ' as _decision, row_key', row_over(mirror, over), shown_over(mirror, over)) }}
{%- endmacro -%}
{%- macro with_fate(mirror, rows, key, row, shown) -%}
select *, _newest.removes or not {{ macro('is_kept_' ~ mirror.ways.keeps)(mirror) }} as _is_gone
from (
  select {{ key }} as _row_key, newest as _newest, {{ shown }}
  from (select *, {{ row }} as row from {{ rows }})
)
{%- endmacro -%}

{%- macro key_columns_of(mirror, row) -%} {{ mirror.key | each('column_of', row) | join(', ') }} {%- endmacro -%}
{%- macro column_of(column, row) -%} {{ row }}.{{ name(column) }} {%- endmacro -%}
{%- macro column_set(column) -%} own.{{ name(column) }} = new.{{ name(column) }} {%- endmacro -%}

{#- With the first and the last value of each column as literals, which keep files from being read that can have none of these rows. -#}
{%- macro key_matches(query, row, key) -%}
{% for column in query.mirror.key %}{{ row }}.{{ name(column) }} = {{ key }}.{{ name(column) }} and {% endfor %}{{ in_bounds(query, row) }}
{%- endmacro -%}

{%- macro in_bounds(query, row) -%}
true
{%- for column, first, last in query.bounds %} and {{ row }}.{{ name(column.name) }} between {{ bound(column, first) }} and {{ bound(column, last) }}{% endfor -%}
{%- endmacro -%}

{%- macro bound(column, value) -%} cast({{ text(value) }} as {{ column.type }}) {%- endmacro -%}

{#- Of a key that is there already the newest place counts. -#}
{%- macro state_beside_written(query, gone, changed) -%}
insert into {{ gone }} ({{ query.mirror.key | map('name') | join(', ') }}, _known_until, _known_at, _in_parts)
select {{ key_columns_of(query.mirror, '_row_key') }}, _seq, _changed_at, _in_parts from {{ name(changed) }} where _is_gone
{%- endmacro -%}

{%- macro state_merged(query, table, changed) -%}
{%- set is_not_older = 'new._seq >= own._seq' -%}
merge into {{ table }} as own using {{ name(changed) }} as new
on {{ key_matches(query, 'own', 'new._row_key') }}
when matched and new._is_gone and {{ is_not_older }} then delete
when matched and {{ is_not_older }} then update set {{ query.columns | each('column_set') | join(', ') }}

when not matched and not new._is_gone then insert ({{ query.columns | map('name') | join(', ') }})
  values ({{ query.columns | each('column_of', 'new') | join(', ') }})
{%- endmacro -%}

{%- macro table_of_row(of='') -%} array_compact(array({{ of }}tenant, {{ of }}db_name, {{ of }}schema_name, {{ of }}table_name)) {%- endmacro -%}
