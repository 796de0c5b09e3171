{#- From messages to rows of the changelog: one SELECT for each source, in named steps, in the order the data takes.
    `plan` is what to print (runner/compile/plan.py); the steps print no branch for what the format does not use. -#}

{#- The functions of a source: what depends on its zone, its types and its messages. -#}
{%- macro functions_of_source(plan) -%}
{{ document_function(plan) if not plan.avro }}
{{ value_functions(plan) if plan.values.readers }}
{{ time_functions(plan) }}
{%- endmacro -%}

{%- macro changelog(plan) -%}
{%- set spec = plan.spec -%}
with
{%- if plan.avro %}{{ avro_records(plan) }}{% else %}{{ json_documents(plan) }}{% endif %}

-- What each message is, in words: kind, then op{{ '; its rows, those before an update, and their types.  [op, each, before, after, types]' if plan.images.in_lists else '.  [op]' }}
classified as (
  select *,
    {{ verdict(spec.op) }} as verdict
    {%- if plan.images.in_lists %},
    {{ types(plan) }} as types,
    {%- if plan.values.readers and not plan.tables.typed %} {{ readers(plan) }} as readers,{% endif %}
    {{ row_lists(plan) }}
    {%- endif %}
  from {{ 'placed' if plan.placing and plan.placing.is_needed else 'parsed' }}
),
{%- if plan.images.texts %}

-- Documents that came as texts in another language than JSON.  [text]
parsed_texts as (
  select *,
    {%- for image in plan.images.texts %}
    {{ image.function }}(if(verdict {{ one_of(image.verdicts) }}, {{ text_of_image(image) }}, null)) as {{ name(image.column) }}{{ ',' if not loop.last }}
    {%- endfor %}
  from classified
),
{%- endif %}
{%- if plan.images.sent %}

{{ named_images(plan) }}
{%- elif plan.images.named %}

{{ maps_of_images(plan) }}
{%- endif %}
{%- if not plan.images.in_lists %}

{{ message_images(plan) }}
{%- endif %}

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    {%- if plan.avro %}
    {{ error_detail(plan) }} as error_detail,
    {%- if plan.images.sent %}
    {{ marks(plan) }},
    {%- endif %}
    {%- elif plan.images.texts %}
    {{ unfit_in_texts(plan) }} as unfit_columns,
    {%- endif %}
    case
      when parse_error is not null then parse_error
      when verdict is null then if({{ plain(spec.op.by) }} is null, 'no-op', 'unknown-op')
      {%- if plan.verdicts.dead_letters %}
      when verdict like 'dead\\_letter %' then substring_index(substring_index(verdict, ' ', 2), ' ', -1)
      {%- endif %}
      when verdict not like 'row %' then null
      {{- bad_rows(plan) }}
    end as reason,
    {%- if plan.tables.all %}
    array_compact(array({% for column in plan.names %}{{ given(column.value) }}{{ ', ' if not loop.last }}{% endfor %})) as table_names,
    {%- endif %}
    {%- if plan.keys.image %}
    {{ key_image(plan.keys) }},
    {%- endif %}
    {{ key_names(plan) }} as key_names
    {%- if not plan.images.in_lists %},
    {{ types(plan) }} as types
    {%- endif %}
    {%- if plan.values.readers and (plan.tables.typed or not plan.images.in_lists) %},
    {{ readers(plan) }} as readers
    {%- endif %}
    {%- if plan.bytes_in_doubt and plan.images.in_lists %}, {{ name(plan.prefix ~ '_in_doubt') }}(raw, rows_before, rows, readers) as rows_in_doubt {%- endif %}
  from {{ 'classified' if plan.images.in_lists else 'message_images' }}
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.{{ '  [drop]' if spec.drop }}{{ '  [not_sent]' if '' in spec.not_sent }}
exploded as (
  select origin, arrival, m, verdict, reason, key_names{{ ', key_image, more_than_key' if plan.keys.image }}, types{{ ', readers' if plan.values.readers and not plan.images.marked }}{{ ', removed' if plan.images.removed }}
    {{- ', error_detail' if plan.avro }}{{ ', damage' if spec.message.frames }}{{ ', unfit_columns' if plan.images.tell_unfit }}{{ ', ambiguous_columns' if plan.images.marked and plan.images.may_be_ambiguous }}{{ ', settled_columns' if plan.images.listed and plan.values.readers }}{{ ', missing_columns' if plan.images.listed and plan.images.may_lack_columns }}
    {{- ', zeros_allowed' if plan.images.in_lists and plan.values.exponents }}{{ ', json_in_doubt' if plan.images.in_lists and plan.bytes_in_doubt }}, {{ 'raw' if plan.images.in_lists else 'if(reason is null, null, raw) as raw' }},
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind, {{ 'coalesce(nth, 0)' if plan.images.in_lists or plan.has_parts else '0' }} as row_index,
    {{ op_of(plan) }} as op,
    {%- if plan.values.readers and plan.images.marked %}
    {{ readers_of_texts('readers') }} as readers,
    {%- endif %}
    {%- if plan.images.in_lists %}
    {%- for entry in plan.meta if entry.members %}
    {{ member_of_row(entry) }} as {{ name(entry.column) }},
    {%- endfor %}
    {%- endif %}
    {{ [columns_of_image(plan, plan.images.before) ~ ' as sent_before', columns_of_image(plan, plan.images.after) ~ ' as sent_after'] | in_lines(4) }}
    {%- if plan.images.may_lack_columns %},
    if(size(missing_columns) > 0, map_concat(map_from_arrays(missing_columns, missing_columns), coalesce(types, map())), types) as named_columns
    {%- elif plan.images.name_columns %},
    {{ names_in_images(plan) }} as named_columns
    {%- endif %}
    {%- if plan.bytes_in_doubt and not plan.images.in_lists %},
    {{ name(plan.prefix ~ '_in_doubt') }}(raw, sent_before, sent_after, readers) as json_in_doubt
    {%- endif %}
    {%- if plan.images.others %},
    {{ other_image(plan) }} as other_image
    {%- endif %}
    {%- if spec.types and spec.types.default %},
    {{ defaults_sent(plan) }} as defaults
    {%- endif %}
  from {% if plan.images.in_lists %}{{ each_row(plan) }}{% else %}checked{% endif %}
),
{%- if plan.values.python %}

-- The values that only a function over a whole image can read.  [values]
python_read as (
  select *,
    {%- for one in plan.values.python %}{% for side in ('before', 'after') %}
    {{ python_reading(one, side) }} as {{ one.function }}_{{ side }}{{ ',' if not loop.last }}
    {%- endfor %}{{ ',' if not loop.last }}{% endfor %}
  from exploded
),
{%- endif %}
{%- if plan.values.readers %}

-- The canonical text of the values whose text as sent may be another.  [types.table, values]
texts as (
  select *,
    {%- for side in ('before', 'after') %}
    {{ name(plan.prefix ~ '_texts') }}(sent_{{ side }}, readers{{ ', zeros_allowed' if plan.images.in_lists and plan.values.exponents }}{{ ', json_in_doubt' if plan.bytes_in_doubt }}{% for one in plan.values.python %}, {{ one.function }}_{{ side }}{% endfor %}) as texts_{{ side }}{{ ',' if not loop.last }}
    {%- endfor %}
  from {{ 'python_read' if plan.values.python else 'exploded' }}
),
{%- endif %}

-- Both images in canonical text{{ '; one of only some columns is laid over the other.  [before.over, after.over]' if plan.images.before.laid_over or plan.images.after.laid_over else '.' }}{{ '  [not_sent]' if plan.spec.not_sent | reject('equalto', '') | list }}
images as (
  select *,
    {{ without_unsent(image_before(plan), plan) }} as before,
    {{ without_unsent(image_after(plan), plan) }} as after, map_keys(sent_before) as columns_before{{ ', map_keys(sent_after) as columns_after' if plan.images.after.laid_over and not plan.images.before.laid_over }}
    {%- if plan.tells_as_sent %},
    {{ columns_as_sent(plan) }} as columns_as_sent
    {%- endif %}
    {%- if plan.tells_ambiguous_times %},
    {{ ambiguous_times(plan) }} as ambiguous_times
    {%- endif %}
  from {{ 'texts' if plan.values.readers else 'exploded' }}
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
  {{ contract_columns(plan) }}
from keyed
{%- endmacro -%}

{#- Loaded rows may not be numbered with the changes. -#}
{%- macro position_of_row(plan) -%}
{%- set numbers = position(plan.order, plan.zone) -%}
{{ "if(op = 'snapshot', cast(array() as array<decimal(38,0)>), " ~ numbers ~ ')' if plan.spec.loads == 'unnumbered' and plan.order else numbers }}
{%- endmacro -%}

{#- The columns of the contract. -#}
{%- macro contract_columns(plan) -%}
{%- set parts = ['kind', text(plan.source) ~ ' as source', text(plan.spec.name) ~ ' as format', 'op'] -%}
{%- for column in plan.names -%} {%- do parts.append(column_value(column, plan.zone) ~ ' as ' ~ column.name) -%} {%- endfor -%}
{%- set old_key = 'if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null)' -%}
{%- do parts.extend(['key', old_key ~ ' as old_key', 'key_text(key) as key_text', 'before', 'after']) -%}
{%- for side in (plan.images.before, plan.images.after) -%} {%- do parts.append(completeness(plan.images, side) ~ ' as ' ~ side.name ~ '_image') -%} {%- endfor -%}
{%- do parts.extend([changed(plan.images) ~ ' as changed', types_of_message(plan) ~ ' as types']) -%}
{%- for column in ('event_time', 'produced_at', 'tx_id') -%} {%- do parts.append(column_value(plan.columns[column], plan.zone) ~ ' as ' ~ column) -%} {%- endfor -%}
{%- set order -%}
named_struct('generation', {{ plan.generation }}, 'phase', {{ "if(op = 'snapshot', 0, 1)" if plan.spec.loads == 'late' else '1' }},
    'position', {{ position_of_row(plan) }}, 'arrival', arrival, 'row', row_index) as seq, {{ pair_id(plan) }} as pair_id
{%- endset -%}
{%- do parts.extend([order, meta(plan) ~ ' as meta', 'origin']) -%}
{%- do parts.append("case when kind = 'ddl' then " ~ column_value(plan.columns['statement'], plan.zone) ~ ' end as statement') -%}
{%- set told = "if(kind = 'dead_letter', error_detail, null)" if plan.avro else 'damage' if plan.spec.message.frames -%}
{%- set found -%} {{ 'coalesce(' ~ told ~ ', ' if told }}{{ detail(plan) }}{{ ')' if told }} as detail {%- endset -%}
{%- set raw = 'base64(raw)' if plan.avro else "if(reason = 'not-utf8', base64(cast(raw as binary)), raw)" -%}
{%- do parts.extend(['reason', found, raw ~ ' as raw']) -%}
{{ parts | in_lines(2) }}
{%- endmacro -%}
