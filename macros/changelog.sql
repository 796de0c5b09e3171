{#- From messages to rows of the changelog: one SELECT for each source, in named steps, in the order the data takes.
    `plan` is what the format says (runner/plan.py); the steps print no branch for what the format does not use. -#}

{%- macro changelog(plan) -%}
{%- set spec = plan.spec -%}
{%- set messages = name(plan.source ~ '_messages') -%}
with
{%- if plan.exact %}

-- Bare numbers that a JSON parser would round are put in quotes first, with a mark. Most messages hold none.  [message.numbers]
exact as (
  select
    *,
    if(raw rlike {{ may_lose_digits() }}, {{ marked_fractions() }}, null) as marked
  from {{ messages }}
),
{%- endif %}

-- The fields that the format names. Behind the document stands a seal: found in its place, nothing else came with the document.
decoded as (
  select
    *,
    from_json(
      concat('[', {{ json(plan) }}, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<{{ field_type(plan.sealed_fields, 8) }}>',
      {{ json_options() }}) as documents
  from {{ 'exact' if plan.exact else messages }}
),

-- The one document, or why there is not one.
opened as (
  select
    * except (documents),
    {%- if plan.exact %}
    case
      when unread is not null then null
      when marked is null then get(documents, 0)
      else {{ unmarked_tree(plan.sealed_fields, 'get(documents, 0)', 6) }}
    end as m
    {%- else %}
    if(unread is null, get(documents, 0), null) as m
    {%- endif %}
  from (
    select
      *,
      case
        when not is_valid_utf8(raw) then 'not-utf8'
        when get(documents, 1).seal = cast(xxhash64(raw) as string) and size(documents) = 2 and get(documents, 0) is not null then null
        {{- not_one_object(json(plan)) | indent(2) }}
      end as unread
    from decoded
  )
),

-- What each message is, in words: kind, then op.  [op]
judged as (
  select
    *,
    case
      when raw is null then {{ text(spec.op.empty.verdict) }}
      {{- cases(spec.op) }}
    end as verdict
  from opened
),

-- The rows of each row change, and the rows before an update.  [each, before, after]
listed as (
  select
    *,
    case verdict{{ rows_of(plan, 'own') }} end as rows,
    {{ rows_before(plan) }} as rows_before
  from {% if plan.lists %}(
    -- A bare object counts as a list of one. Only row changes without the usual lists pay for this second look.
    select
      *,
      case when {{ has_odd_lists(plan) }} then {{ second_look(plan) }} end as look
    from judged
  ){% else %}judged{% endif %}
),

-- Why a message cannot be used. One bad row spoils its whole message: nothing is half landed.
checked as (
  select
    origin, arrival, raw, verdict, rows, rows_before,
    {{ header(plan.header, 'm', 4) }} as m,
    case
      when unread is not null then unread
      when verdict is null and {{ plain(spec.op.by) }} is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      {{- bad_rows(plan) }}
      when size(rows_before) > size(rows) then 'uneven-rows'
    end as reason,
    {{ key_names(spec) }} as key_names,
    {{ clean(first_field(spec.types.at), spec) if spec.types else 'cast(null as map<string,string>)' }} as types
  from listed
),
{%- if plan.readers %}

-- The columns whose text may not be canonical as sent, and how to read it.  [types.table, values]
classed as (
  select
    *,
    transform(
      filter(map_entries(types), t -> {{ bare_type('t.value') }} in (
        {{ plan.type_names | map('sql_text') | join(', ') }})),
      t -> struct(
        t.key as column,
        {{ reader_of('t.value', plan) }} as reader
        {%- if plan.needs_labels %},
        if({{ bare_type('t.value') }} in ({{ plan.labelled | map('sql_text') | join(', ') }}), {{ labels('t.value') }}, null) as labels
        {%- endif %})) as readers
  from checked
),
{%- endif %}

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types{{ ', readers' if plan.readers }},
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, {{ op_of(spec) }}, null) as op,
    coalesce(position, 0) as row_index,
    {{ sent(plan, 'before') }} as sent_before,
    {{ sent(plan, 'after') }} as sent_after
  from {{ 'classed' if plan.readers else 'checked' }}
  lateral view outer posexplode(if(reason is null, arrays_zip(rows, rows_before), null)) as position, row
),

-- The images as sent: of equal names the last counts, and what is no column is put aside.{{ '  [drop]' if spec.drop }}
cleaned as (
  select
    * except (sent_before, sent_after),
    {%- for entry, value in plan.row_meta.items() %}
    {{ member_of_row(value) }} as {{ name('meta_' ~ entry) }},
    {%- endfor %}
    {{ clean_image('sent_before', spec) }} as sent_before,
    {{ clean_image('sent_after', spec) }} as sent_after
  from exploded
),
{%- if plan.readers %}

-- The values that read otherwise than they were sent, before and after; without a text where the reader could not read.  [values]
rewritten as (
  select
    *,
    if(coalesce(size(readers), 0) = 0, null, transform(array(sent_before, sent_after), image -> filter(
      transform(
        transform(readers, r -> struct(r.column, r.reader{{ ', r.labels' if plan.needs_labels }}, image[r.column] as sent)),
        v -> struct(v.column, v.sent, {{ read_value(plan) | indent(8) }} as text)),
      v -> not v.text <=> v.sent))) as rewritten
  from cleaned
),

-- The images in canonical text.
canonical as (
  select
    *,
    {{ with_texts('sent_before', 0) }} as read_before,
    {{ with_texts('sent_after', 1) }} as read_after
  from rewritten
),
{%- endif %}

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select
    *,
    {{ image(plan, 'before', 'after') }} as before,
    {{ image(plan, 'after', 'before') }} as after
  from {{ 'canonical' if plan.readers else 'cleaned' }}
),

-- The key columns, looked up in the images; null if one of them is not there.  [key]
keyed as (
  select
    *,
    {{ key_of(spec) }} as key,
    {{ key_before(spec) }} as key_before
  from images
),

-- The vendor's extras, known or not, and the columns that stayed as sent.  [meta]
extras as (
  select *, {{ meta(plan) }} as extras
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  {{ text(plan.source) }} as source,
  {{ text(spec.name) }} as format,
  op,
  {%- for column in ('tenant', 'db_name', 'schema_name', 'table_name') %}
  {{ given(spec.columns.get(column)) }} as {{ column }},
  {%- endfor %}
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key)) as key_text,
  before,
  after,
  case when kind <> 'row' then null when before is null then 'none'
    {%- if not plan.overlays.before %} when exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial'{% endif %} else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' else 'full' end as after_image,
  case when kind = 'row' and op = 'update' and before is not null then {{ changed(plan) }} end as changed,
  if(kind = 'row', types, null) as types,
  {{ time(spec.columns.get('event_time')) }} as event_time,
  {{ time(spec.columns.get('produced_at')) }} as produced_at,
  {{ given(spec.columns.get('tx_id')) }} as tx_id,
  named_struct(
    'generation', 0,
    'phase', {{ phase(plan) }},
    'position', {{ position(spec.seq) }},
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(extras, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then {{ plain(spec.columns.get('statement')) }} end as statement,
  reason,
  {{ detail(spec) }} as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from extras
{%- endmacro -%}


{#- JSON ------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro json(plan) -%} {{ 'coalesce(marked, raw)' if plan.exact else 'raw' }} {%- endmacro -%}

{%- macro json_options() -%}
map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')
{%- endmacro -%}

{#- What a JSON parser would change: a number with a fraction or an exponent (it ends before a comma or a bracket; one in quotes does not),
    minus zero, and half a surrogate pair. A hit inside a text costs time and nothing else. -#}
{%- macro may_lose_digits() -%}
'[.eE\\-\\\\](?:[-+0-9eE]++\\s*+[,}\\]]|u[dD][89a-fA-F])'
{%- endmacro -%}

{#- Every JSON number that is no plain integer, in quotes behind a mark. Texts and plain integers are skipped; what is no JSON number stays. -#}
{%- macro marked_fractions() -%}
{%- set string -%} "(?:[^"\\\\]++|\\\\.)*+" {%- endset -%}
{%- set number -%} -?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-]) {%- endset -%}
regexp_replace(
      {{ whole_surrogates('raw') }},
      '(?s)\\G((?:[^"\\-0-9]++|{{ string }}|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)({{ number }}|-0(?![0-9.eE]))',
      '$1"\uFFFF$2"')
{%- endmacro -%}

{#- Half a surrogate pair is no character. -#}
{%- macro whole_surrogates(json) -%}
regexp_replace(
        {{ json }},
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd')
{%- endmacro -%}

{#- A text without the mark: in front of a number, and inside a nested value with its quotes. -#}
{%- macro unmarked(value) -%}
if(startswith({{ value }}, '\uFFFF'), substr({{ value }}, 2), regexp_replace({{ value }}, '"\uFFFF([^"]*+)"', '$1'))
{%- endmacro -%}

{%- macro unmarked_tree(tree, path, indent) -%}
{%- if tree == 'string' -%} {{ unmarked(path) }}
{%- elif tree == 'array<string>' -%} transform({{ path }}, v -> {{ unmarked('v') }})
{%- elif tree == 'map<string,string>' -%} transform_values({{ path }}, (c, v) -> {{ unmarked('v') }})
{%- elif tree is string -%} transform({{ path }}, r -> transform_values(r, (c, v) -> {{ unmarked('v') }}))
{%- else -%}
if({{ path }} is null, null, named_struct(
{%- for part, branch in tree.items() %}
{{ ' ' * indent }}  {{ text(part) }}, {{ unmarked_tree(branch, path ~ '.' ~ name(part), indent + 2) }}{{ ',' if not loop.last }}
{%- endfor -%}
))
{%- endif -%}
{%- endmacro -%}

{%- macro field_type(tree, indent) -%}
{%- if tree is string -%} {{ tree }} {%- else -%}
struct<
{%- for part, branch in tree.items() %}
{{ ' ' * indent }}{{ name(part) | sql_inner }} {{ field_type(branch, indent + 2) }}{{ ',' if not loop.last }}
{%- endfor -%}
>
{%- endif -%}
{%- endmacro -%}

{#- The reason for a text that is not exactly one JSON object. -#}
{%- macro not_one_object(json) -%}
{%- set sealed -%} from_json(concat('[', {{ json }}, ',null]'), 'array<string>', {{ json_options() }}) {%- endset %}
      when raw is null then null
      when not raw rlike '[^ \\t\\r\\n]' then 'empty'
      when size({{ sealed }}) = 2 then 'not-an-object'
      when from_json({{ json }}, 'map<string,string>', {{ json_options() }}) is not null then 'trailing-text'
      when from_json({{ json }}, 'array<string>', {{ json_options() }}) is not null then 'trailing-text'
      when size({{ sealed }}) > 2 then 'trailing-text'
      else 'not-json'
{%- endmacro -%}


{#- Values ------------------------------------------------------------------------------------------------------------------------ -#}

{%- macro field(path) -%} m{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{%- macro first_field(paths) -%}
{%- if paths | length == 1 -%} {{ field(paths[0]) }} {%- else -%} coalesce({% for path in paths %}{{ field(path) }}{{ ', ' if not loop.last }}{% endfor %}) {%- endif -%}
{%- endmacro -%}

{#- The first choice that gives a text; '' gives none. -#}
{%- macro given(value) -%}
{%- if not value -%} cast(null as string)
{%- elif value | length == 1 -%} nullif({{ plain(value) }}, '')
{%- else -%} coalesce({% for choice in value %}nullif({{ plain([choice]) }}, ''){{ ', ' if not loop.last }}{% endfor %})
{%- endif -%}
{%- endmacro -%}

{%- macro plain(value) -%}
{%- if not value -%} cast(null as string)
{%- elif value | length == 1 -%} {{ known(field(value[0].path), value[0].unknown) }}
{%- else -%} coalesce({% for choice in value %}{{ plain([choice]) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endif -%}
{%- endmacro -%}

{%- macro known(expression, unknown) -%}
{%- if unknown -%} if({{ expression }} {{ one_of(unknown) }}, null, {{ expression }}) {%- else -%} {{ expression }} {%- endif -%}
{%- endmacro -%}

{#- An instant up to the year 9999; null if the field does not hold one. -#}
{%- macro time(value) -%}
{%- if not value -%} cast(null as timestamp)
{%- elif value | length > 1 -%} coalesce({% for choice in value %}{{ time([choice]) }}{{ ', ' if not loop.last }}{% endfor %})
{%- else -%}
{%- set sent = field(value[0].path) -%}
{%- set unknown = (' and not ' ~ sent ~ ' ' ~ one_of(value[0].unknown)) if value[0].unknown else '' -%}
{%- if value[0].reader == 'epoch_s' -%}
timestamp_micros(if({{ sent }} rlike '^[0-9]{1,11}(?:\\.[0-9]{1,9})?$'{{ unknown }}, cast(try_cast({{ sent }} as decimal(20,6)) * 1000000 as bigint), null))
{%- else -%}
timestamp_millis(if({{ sent }} rlike '^[0-9]{1,15}$' and try_cast({{ sent }} as bigint) <= 253402300799999{{ unknown }}, try_cast({{ sent }} as bigint), null))
{%- endif -%}
{%- endif -%}
{%- endmacro -%}

{#- Order numbers; the list stops at the first that is not known. -#}
{%- macro position(values) -%}
{%- if not values -%} cast(array() as array<decimal(38,0)>)
{%- else -%}
aggregate(
      array({% for value in values %}if({{ plain(value) }} rlike '^-?[0-9]{1,38}$', try_cast({{ plain(value) }} as decimal(38,0)), null){{ ', ' if not loop.last }}{% endfor %}),
      named_struct('known', cast(array() as array<decimal(38,0)>), 'goes_on', true),
      (list, number) -> if(list.goes_on and number is not null, named_struct('known', array_append(list.known, number), 'goes_on', true), named_struct('known', list.known, 'goes_on', false)),
      list -> list.known)
{%- endif -%}
{%- endmacro -%}


{#- Op ---------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro cases(op) -%}
{%- for line in op.first %}
      when {{ conditions(line) }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- for words, lines in op.cases.items() -%}
{%- for line in lines %}
      when {{ plain(op.by) }} = {{ text(words) }}{{ (' and ' ~ conditions(line)) if line.conditions }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- endfor -%}
{%- for line in op.missing %}
      when {{ plain(op.by) }} is null{{ (' and ' ~ conditions(line)) if line.conditions }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- for line in op.otherwise %}
      when {{ plain(op.by) }} is not null{{ (' and ' ~ conditions(line)) if line.conditions }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- endmacro -%}

{%- macro conditions(line) -%}
{%- for c in line.conditions -%}
{{ ' and ' if not loop.first }}
{%- if c.test == 'is' -%} {{ field(c.path) }} {{ one_of(c.texts) }}
{%- elif c.test == 'is_not' -%} not coalesce({{ field(c.path) }} {{ one_of(c.texts) }}, false)
{%- elif c.test == 'has' -%} {{ field(c.path) }} is not null
{%- else -%} {{ field(c.path) }} is null
{%- endif -%}
{%- endfor -%}
{%- endmacro -%}

{%- macro one_of(texts) -%}
{%- if texts | length == 1 -%} = {{ text(texts[0]) }} {%- else -%} in ({{ texts | map('sql_text') | join(', ') }}) {%- endif -%}
{%- endmacro -%}

{%- macro op_of(spec) -%}
{%- set word = "split_part(verdict, ' ', 2)" -%}
{%- if spec.op.lines() | selectattr('op', 'none') | list -%}
if(split_part(verdict, ' ', 2) = 'by_statement', {{ by_statement(plain(spec.columns.get('statement'))) }}, {{ word }})
{%- else -%} {{ word }} {%- endif -%}
{%- endmacro -%}

{#- The kind of a DDL from its statement's first words, behind comments. -#}
{%- macro by_statement(statement) -%}
{%- set skipped -%} (?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$)) {%- endset -%}
case
      when {{ statement }} rlike '(?is)^{{ skipped }}*+(?:create|drop){{ skipped }}++(?:(?:or{{ skipped }}++replace|unique|fulltext|spatial|online|offline){{ skipped }}++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract({{ statement }}, '(?is)^{{ skipped }}*+([a-z]++)', 1))), 'other') end
{%- endmacro -%}

{%- macro phase(plan) -%}
{%- set snapshots = plan.lines | selectattr('phase', 'equalto', 0) | map(attribute='verdict') | unique | list -%}
{%- if snapshots -%} if(reason is null and verdict in ({{ snapshots | map('sql_text') | join(', ') }}), 0, 1) {%- else -%} 1 {%- endif -%}
{%- endmacro -%}


{#- Rows -------------------------------------------------------------------------------------------------------------------------- -#}

{#- The lists that give the rows: a delete's are its rows before, every other change's those after. -#}
{%- macro rows_of(plan, side) -%}
{%- for line in plan.rows %}
      when {{ text(line.verdict) }} then {{ first_rows(line.own.at, plan) }}
{%- endfor -%}
{%- endmacro -%}

{%- macro rows_before(plan) -%}
{%- if plan.updates -%}
coalesce(case verdict
{%- for line in plan.updates %}
      when {{ text(line.verdict) }} then {{ first_rows(line.before.at, plan) }}
{%- endfor %} end, array())
{%- else -%} cast(array() as array<map<string,string>>)
{%- endif -%}
{%- endmacro -%}

{#- The first of several lists that holds a row. -#}
{%- macro first_rows(paths, plan) -%}
{%- if paths | length == 1 -%} {{ row_list(paths[0], plan) }}
{%- else -%} case{% for path in paths[:-1] %} when {{ holds_row(row_list(path, plan)) }} then {{ row_list(path, plan) }}{% endfor %} else {{ row_list(paths[-1], plan) }} end
{%- endif -%}
{%- endmacro -%}

{%- macro holds_row(rows) -%} exists({{ rows }}, r -> size(r) > 0) {%- endmacro -%}

{%- macro row_list(path, plan) -%}
{%- if path in plan.lists -%} coalesce({{ field(path) }}, array_compact(array({{ look('objects', path) }})))
{%- else -%} array({{ field(path) }})
{%- endif -%}
{%- endmacro -%}

{%- macro look(kind, path) -%} look.{{ kind }}{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{#- Row changes without a list full of rows, and updates without one for the rows before. -#}
{%- macro has_odd_lists(plan) -%}
{%- for line in plan.rows -%}
verdict = {{ text(line.verdict) }} and not (
        {{- 'coalesce(' }}size({{ field(line.own.at[0]) }}) > 0 and forall({{ field(line.own.at[0]) }}, r -> size(r) > 0)
        {%- if line in plan.updates %} and size({{ field(line.before.at[0]) }}) > 0 and forall({{ field(line.before.at[0]) }}, r -> r is not null){% endif %}, false)){{ '
        or ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}

{#- The lists as bare objects, as lists of texts, and as texts: what is there and is no row shows in one of them. -#}
{%- macro second_look(plan) -%}
named_struct(
        'objects', {{ unmarked_look(plan) if plan.exact else reread(plan, 'map<string,string>') }},
        'lists', {{ reread(plan, 'array<string>') }},
        'texts', {{ reread(plan, 'string') }})
{%- endmacro -%}

{%- macro reread(plan, type) -%}
from_json({{ json(plan) }}, {{ text(field_type(plan.list_fields(type), 0) | replace('\n', ' ')) }}, {{ json_options() }})
{%- endmacro -%}

{%- macro unmarked_look(plan) -%}
get(transform(
          array({{ reread(plan, 'map<string,string>') }}),
          look -> {{ unmarked_tree(plan.list_fields('map<string,string>'), 'look', 10) }}), 0)
{%- endmacro -%}

{%- macro bad_rows(plan) -%}
{%- if plan.lists %}
      when look is not null and case verdict
        {%- for line in plan.rows %}
        when {{ text(line.verdict) }} then {% for path in line.own.at %}{{ is_no_row_list(path) }}{% if not loop.last %} or not coalesce({{ holds_row(row_list(path, plan)) }}, false) and ({% endif %}{% endfor %}{{ ')' * (line.own.at | length - 1) }}
        {%- endfor %} end then 'row-not-an-object'
{%- endif %}
      when not coalesce({{ holds_row('rows') }}, false) then
        {%- if plan.spec.columns.get('statement') %} if({{ given(plan.spec.columns.get('statement')) }} is not null, 'statement-without-rows', 'no-row-image') {%- else %} 'no-row-image' {%- endif %}
{%- for line in plan.updates if plan.lists %}
      when look is not null and verdict = {{ text(line.verdict) }} and ({{ is_no_list_before(line.before.at[0]) }}) then 'row-not-an-object'
{%- endfor -%}
{%- endmacro -%}

{#- There is something in place of a list of rows, or a null in the list. -#}
{%- macro is_no_list(path) -%}
{{ look('texts', path) }} is not null and {{ look('objects', path) }} is null and {{ field(path) }} is null
{%- endmacro -%}

{%- macro is_no_row_list(path) -%}
({{ is_no_list(path) }} or coalesce(exists({{ field(path) }}, r -> r is null), false))
{%- endmacro -%}

{#- An element of the list before an update may be null: then that row has no image there. Anything else that is no object is refused. -#}
{%- macro is_no_list_before(path) -%}
{{ is_no_list(path) }}
        or array_contains(transform({{ look('lists', path) }}, (r, i) -> r is not null and get({{ field(path) }}, i) is null), true)
{%- endmacro -%}

{#- A row change's image on one side. -#}
{%- macro sent(plan, side) -%}
{%- set own = plan.rows | selectattr('op', 'equalto' if side == 'before' else 'ne', 'delete') | map(attribute='verdict') | list -%}
{%- set other = plan.updates | map(attribute='verdict') | list if side == 'before' else [] -%}
case
      {%- if own %} when verdict {{ one_of(own) }} then row.rows{% endif %}
      {%- if other %} when verdict {{ one_of(other) }} then row.rows_before{% endif %} end
{%- endmacro -%}

{%- macro clean(map, spec) -%}
if(size(array_distinct(map_keys({{ map }}))) < size({{ map }}){% for column in spec.drop %} or map_contains_key({{ map }}, {{ text(column) }}){% endfor %},
      {{ 'map_filter(' if spec.drop }}map_from_entries(map_entries({{ map }})){% if spec.drop %}, (c, v) -> c not in ({{ spec.drop | map('sql_text') | join(', ') }})){% endif %}, {{ map }})
{%- endmacro -%}

{#- An image whose names are those of the types is clean, as the types are. -#}
{%- macro clean_image(map, spec) -%}
if(map_keys({{ map }}) = map_keys(types), {{ map }}, {{ clean(map, spec) }})
{%- endmacro -%}

{%- macro header(tree, path, indent) -%}
named_struct(
{%- for part, branch in tree.items() %}
{{ ' ' * indent }}  {{ text(part) }}, {% if branch is string %}{{ path }}.{{ name(part) }}{% else %}{{ header(branch, path ~ '.' ~ name(part), indent + 2) }}{% endif %}{{ ',' if not loop.last }}
{%- endfor -%}
)
{%- endmacro -%}

{#- Members of a row that are no columns. -#}
{%- macro member_of_row(value) -%}
{%- set names = value | map(attribute='path') | map('last') | unique | list -%}
coalesce({% for n in names %}sent_after[{{ text(n) }}], sent_before[{{ text(n) }}]{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}


{#- Types and canonical text ------------------------------------------------------------------------------------------------------- -#}

{#- A type's name without what is in brackets and behind blanks. -#}
{%- macro bare_type(type) -%} substring_index(substring_index(lower({{ type }}), '(', 1), ' ', 1) {%- endmacro -%}

{%- macro reader_of(type, plan) -%}
case
          {%- for reader, names in plan.readers.items() %}
          when {{ bare_type(type) }} in ({{ names | map('sql_text') | join(', ') }}) then {{ text(reader) }}
          {%- endfor %} end
{%- endmacro -%}

{%- macro with_texts(sent, side) -%}
if(coalesce(size(rewritten[{{ side }}]), 0) = 0, {{ sent }},
      map_concat({{ sent }}, map_from_entries(transform(rewritten[{{ side }}], v -> struct(v.column, coalesce(v.text, v.sent))))))
{%- endmacro -%}

{%- macro image(plan, own, other) -%}
{%- set read = 'read' if plan.readers else 'sent' -%}
{%- set verdicts = plan.overlays[own] -%}
{%- if verdicts -%} if(verdict {{ one_of(verdicts) }}, map_concat({{ read }}_{{ other }}, {{ read }}_{{ own }}), {{ read }}_{{ own }}) {%- else -%} {{ read }}_{{ own }} {%- endif -%}
{%- endmacro -%}


{#- Key, changed, meta, detail ------------------------------------------------------------------------------------------------------ -#}

{%- macro key_names(spec) -%}
{%- if spec.key -%} array_except({{ first_field(spec.key) }}, array(cast(null as string){% for column in spec.drop %}, {{ text(column) }}{% endfor %}))
{%- else -%} cast(null as array<string>) {%- endif -%}
{%- endmacro -%}

{%- macro key_of(spec) -%}
case when kind = 'row' and size(key_names) > 0 and forall(key_names, k -> map_contains_key(coalesce(after, before), k)) then
      map_from_arrays(key_names, transform(key_names, k -> coalesce(after, before)[k])) end
{%- endmacro -%}

{#- The key before an update, if it can differ from the one after it. -#}
{%- macro key_before(spec) -%}
case when op = 'update' and arrays_overlap(key_names, map_keys(sent_before)) and forall(key_names, k -> map_contains_key(before, k)) then
      map_from_arrays(key_names, transform(key_names, k -> before[k])) end
{%- endmacro -%}

{#- Where one image is laid over the other, only the columns that it brought can differ. -#}
{%- macro changed(plan) -%}
{%- set columns = 'map_keys(sent_before)' if plan.overlays.before else 'map_keys(sent_after)' if plan.overlays.after else 'array_union(map_keys(before), map_keys(after))' -%}
sort_array(filter({{ columns }}, c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))))
{%- endmacro -%}

{%- macro meta(plan) -%}
{%- set spec = plan.spec -%}
map(
      {%- for entry, value in spec.meta.items() %}
      {{ text(entry) }}, {{ name('meta_' ~ entry) if entry in plan.row_meta else plain(value) }},
      {%- endfor %}
      {%- if spec.key %}
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      {%- endif %}
      {%- if plan.readers %}
      'as_sent', {{ as_sent() }},
      {%- endif %}
      'raw_encoding', if(reason = 'not-utf8', 'base64', null))
{%- endmacro -%}

{#- The columns whose values their readers could not read. -#}
{%- macro as_sent() -%}
array_join(sort_array(array_distinct(transform(filter(flatten(rewritten), v -> v.text is null), v -> v.column))), ',')
{%- endmacro -%}


{%- macro detail(spec) -%}
{%- set by -%} {% for choice in spec.op.by %}{{ choice.path | join('.') }}{{ ' or ' if not loop.last }}{% endfor %} {%- endset -%}
case reason
    when 'no-op' then {{ text(by ~ ': missing') }}
    when 'unknown-op' then concat({{ text(by ~ ': "') }}, {{ plain(spec.op.by) }}, '"')
    when 'no-row-image' then concat({{ text(by ~ ': "') }}, {{ plain(spec.op.by) }}, '", without a row')
    when 'statement-without-rows' then concat({{ text(by ~ ': "') }}, {{ plain(spec.op.by) }}, '", without a row; statement: ', {{ plain(spec.columns.get('statement')) }})
    when 'row-not-an-object' then concat({{ text(by ~ ': "') }}, {{ plain(spec.op.by) }}, '", with a row that is null or no object')
    when 'uneven-rows' then concat({{ text(by ~ ': "') }}, {{ plain(spec.op.by) }}, '", with more rows before the change than after it')
  end
{%- endmacro -%}
