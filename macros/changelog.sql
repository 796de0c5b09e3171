{#- From messages to rows of the changelog: one SELECT for each source, in named steps, in the order the data takes.
    `plan` is what to print (runner/compile/plan.py); the steps print no branch for what the format does not use. -#}

{#- The functions of a source: what depends on its zone, its types and its messages. -#}
{%- macro functions_of_source(plan) -%}
{{ document_functions(plan) if not plan.avro }}
{{ value_functions(plan) if plan.values.readers }}
{{ time_functions(plan) }}
{%- endmacro -%}

{%- macro changelog(plan) -%}
{%- set spec = plan.spec -%}
with
{%- if plan.avro %}{{ avro_records(plan) }}{% else %}{{ json_documents(plan) }}{% endif %}

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case
      when raw is null then {{ text(spec.op.empty.verdict) }}
      {{- cases(spec.op) }}
    end as verdict
  from parsed
),
{%- if plan.images.texts %}

-- Documents that came as texts in another language than JSON.  [text]
parsed_texts as (
  select *,
    {%- for image in plan.images.texts %}
    {{ image.function }}(if(verdict {{ one_of(image.verdicts) }}, {{ field(image.path) }}, null)) as {{ name(image.column) }}{{ ',' if not loop.last }}
    {%- endfor %}
  from classified
),
{%- endif %}

{% if plan.images.sent %}{{ named_images(plan) }}

{% endif -%}
{%- if plan.images.in_lists -%} {{ row_lists(plan) }} {%- else -%} {{ message_images(plan) }} {%- endif %}

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    {%- if plan.avro %}
    {{ error_detail(plan) }} as error_detail,
    {%- if plan.images.sent %}
    {{ unfit_columns(plan) }} as unfit_columns,
    {%- endif %}
    {%- if plan.images.may_lack_columns %}
    {{ lacks_columns(plan.images.before) }} as lacks_before,
    {{ lacks_columns(plan.images.after) }} as lacks_after,
    {%- endif %}
    {%- endif %}
    case
      when parse_error is not null then parse_error
      when verdict is null and {{ plain(spec.op.by) }} is null then 'no-op'
      when verdict is null then 'unknown-op'
      {%- if plan.verdicts.dead_letters %}
      when verdict like 'dead\\_letter %' then split_part(verdict, ' ', 2)
      {%- endif %}
      when verdict not like 'row %' then null
      {{- bad_rows(plan) }}
    end as reason,
    {%- if plan.tables.all %}
    concat_ws('.', {% for column in plan.names %}{{ given(column.value) }}{{ ', ' if not loop.last }}{% endfor %}) as table_path,
    {%- endif %}
    {%- if plan.keys.image %}
    {{ key_image(plan.keys.image) }} as key_image,
    {%- endif %}
    {{ key_names(plan) }} as key_names,
    {{ types(plan) }} as types
  from {{ 'row_lists' if plan.images.in_lists else 'message_images' }}
),

-- One row for each row change; every other message stays one row.
exploded as (
  select origin, arrival, m, verdict, reason{{ ', hidden' if spec.drop }}, key_names{{ ', key_image' if plan.keys.image }}, types{{ ', removed' if plan.images.patches }}
    {{- ', error_detail' if plan.avro }}{{ ', unfit_columns' if plan.images.sent }}{{ ', lacks_before, lacks_after' if plan.images.may_lack_columns }},
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, {{ op_of(plan) }}, null) as op,
    {%- if plan.values.readers %}
    {{ readers(plan) }} as readers,
    {%- endif %}
    {%- if plan.images.in_lists %}
    coalesce(position, 0) as row_index,
    {{ sent_before(plan.images) }} as sent_before,
    {{ sent_after(plan.images) }} as sent_after
    {%- else %}
    0 as row_index,
    if(reason is null, found_before, null) as sent_before,
    if(reason is null, found_after, null) as sent_after
    {%- endif %}
  from checked
  {%- if plan.images.in_lists %}
  lateral view outer posexplode(if(reason is null and verdict like 'row %', rows, null)) as position, row
  {%- endif %}
),
{%- if not plan.avro or spec.drop %}

-- The images as sent: of equal names the last counts, and members that are not columns are left out.{{ '  [drop]' if spec.drop }}{{ '  [not_sent]' if spec.not_sent }}
clean_images as (
  select * except (sent_before, sent_after),
    {%- for entry in plan.meta if entry.members %}
    {{ member_of_row(entry) }} as {{ name(entry.column) }},
    {%- endfor %}
    {{ clean_image('sent_before', plan) }} as sent_before,
    {{ clean_image('sent_after', plan) }} as sent_after
  from exploded
),
{%- endif %}
{%- set cleaned = 'clean_images' if not plan.avro or spec.drop else 'exploded' %}
{%- if plan.values.python %}

-- The values that only a function over a whole image can read.  [values]
python_read as (
  select *,
    {%- for one in plan.values.python %}{% for side in ('before', 'after') %}
    {{ python_reading(one, side) }} as {{ one.function }}_{{ side }}{{ ',' if not loop.last }}
    {%- endfor %}{{ ',' if not loop.last }}{% endfor %}
  from {{ cleaned }}
),
{%- endif %}
{%- if plan.values.readers %}

-- The images in canonical text. In `texts` a value that could not be read is null, here it is as sent.  [types.table, values]
canonical as (
  select *,
    with_texts(sent_before, texts_before) as canonical_before,
    with_texts(sent_after, texts_after) as canonical_after
  from (
    select *,
      {%- for side in ('before', 'after') %}
      {{ name(plan.prefix ~ '_texts') }}(sent_{{ side }}, readers{% for one in plan.values.python %}, {{ one.function }}_{{ side }}{% endfor %}) as texts_{{ side }}{{ ',' if not loop.last }}
      {%- endfor %}
    from {{ 'python_read' if plan.values.python else cleaned }}
  )
),
{%- endif %}

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select *,
    {{ image_before(plan) }} as before,
    {{ image_after(plan) }} as after
  from {{ 'canonical' if plan.values.readers else cleaned }}
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    {{ key_of(plan) }} as key,
    {{ key_before() }} as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, {{ text(plan.source) }} as source, {{ text(spec.name) }} as format, op,
  {%- for column in plan.names %}
  {{ column_value(column, plan.zone) }} as {{ column.name }},
  {%- endfor %}
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  key_text(key) as key_text,
  before, after,
  {{ completeness(plan.images, plan.images.before) }} as before_image,
  {{ completeness(plan.images, plan.images.after) }} as after_image,
  {{ changed(plan.images) }} as changed,
  if(kind = 'row', types, null) as types,
  {{ column_value(plan.columns['event_time'], plan.zone) }} as event_time,
  {{ column_value(plan.columns['produced_at'], plan.zone) }} as produced_at,
  {{ column_value(plan.columns['tx_id'], plan.zone) }} as tx_id,
  named_struct('generation', 0, 'phase', {{ phase(plan.verdicts.snapshots) }},
    'position', {{ position(plan.order, plan.zone) }}, 'arrival', arrival, 'row', row_index) as seq,
  {{ pair_id(plan) }} as pair_id,
  {{ meta(plan) }} as meta,
  origin,
  case when kind = 'ddl' then {{ column_value(plan.columns['statement'], plan.zone) }} end as statement,
  reason,
  {{ 'coalesce(if(kind = \'dead_letter\', error_detail, null), ' if plan.avro }}{{ detail(plan) }}{{ ')' if plan.avro }} as detail,
  {{ 'base64(raw)' if plan.avro else "if(reason = 'not-utf8', base64(cast(raw as binary)), raw)" }} as raw
from keyed
{%- endmacro -%}
