{#- Reading a message's bytes: one record of Avro, and images whose values stand by position. -#}

{#- The record of each message as `m` and its images as they lie there as `sent_images`, or why there is none as `unread`. -#}
{%- macro records_opened(plan) %}

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select
    *,
    {{ plan.avro.name }}(raw, own_schema) as record
  from {{ name(plan.source ~ '_messages') }}
),

-- The one record, or why there is not one.
opened as (
  select
    * except (record, damage),
    record.fields as m,
    {%- if plan.sent_images %}
    record.images as sent_images,
    {%- endif %}
    case
      when damage is not null then 'bad-avro'
      when octet_length(raw) = 0 then 'empty'
      else record.reason
    end as unread,
    coalesce(damage, record.detail) as flaw
  from decoded
),
{%- endmacro -%}

{#- Every image as a map. One whose values are not as many as the columns is none. -#}
{%- macro images_named(plan) -%}
-- The images, column -> value.{{ '  [names]' if plan.sent_images | map(attribute='image') | selectattr('names') | list }}
named as (
  select
    *
    {%- for sent in plan.sent_images %},
    {{ named_image(sent, plan) }} as {{ name(sent.column) }}
    {%- endfor %}
  from judged
),
{%- endmacro -%}

{%- macro sent_image(path) -%} sent_images{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{%- macro named_image(sent, plan) -%}
{%- set at = sent_image(sent.path) -%}
{%- if not sent.image.names -%} {{ at }}.texts
{%- else -%}
{%- set columns = field(sent.image.names) -%}
{%- set whole -%} map_from_arrays({{ columns }}, {{ at }}.texts) {%- endset -%}
case
      when size({{ columns }}) <> size({{ at }}.texts) then null
      {%- if plan.may_lack_columns %}
      when size({{ at }}.missing) > 0 then map_filter({{ whole }}, (c, v) -> not array_contains(transform({{ at }}.missing, i -> get({{ columns }}, i)), c))
      {%- endif %}
      else {{ whole }} end
{%- endif -%}
{%- endmacro -%}

{#- The columns of an image that are written as sent, for want of a text of their class. -#}
{%- macro unfit_columns(plan) -%}
array_compact(flatten(array(
      {%- for sent in plan.sent_images %}
      {% if sent.image.names %}if({{ name(sent.column) }} is null, array(), coalesce(transform({{ sent_image(sent.path) }}.as_sent, i -> get({{ field(sent.image.names) }}, i)), array()))
      {%- else %}coalesce({{ sent_image(sent.path) }}.as_sent, array())
      {%- endif %}{{ ',' if not loop.last }}
      {%- endfor %})))
{%- endmacro -%}

{#- Why a record cannot be used though it is whole: values without columns, key columns that are none. -#}
{%- macro bad_records(plan) -%}
{%- set positional = plan.sent_images | selectattr('image.names') | list -%}
{%- for sent in positional %}
      when {{ is_uneven(sent) }} then 'schema-mismatch'
{%- endfor %}
{%- for key in plan.spec.key if key.indexes %}
      when {{ is_beyond(key) }} then 'schema-mismatch'
{%- endfor %}
{%- endmacro -%}

{%- macro is_uneven(sent) -%} {{ sent_image(sent.path) }}.texts is not null and {{ name(sent.column) }} is null {%- endmacro -%}

{%- macro is_beyond(key) -%}
exists({{ field(key.indexes) }}, i -> i < 0 or i >= coalesce(size({{ field(key.names[0]) }}), 0))
{%- endmacro -%}

{%- macro flaw_of_record(plan) -%}
coalesce(flaw
      {%- for sent in plan.sent_images if sent.image.names -%}
      , if({{ is_uneven(sent) }}, concat({{ text(sent.path | join('.') ~ ': ') }}, size({{ sent_image(sent.path) }}.texts), ' values for ', coalesce(size({{ field(sent.image.names) }}), 0), ' columns'), null)
      {%- endfor %}
      {%- for key in plan.spec.key if key.indexes -%}
      , if({{ is_beyond(key) }}, concat({{ text(key.indexes | join('.') ~ ': ') }}, array_join({{ field(key.indexes) }}, ','), ' of ', coalesce(size({{ field(key.names[0]) }}), 0), ' columns'), null)
      {%- endfor %})
{%- endmacro -%}

{#- Whether an image says of a column that it was not sent. -#}
{%- macro lacks_columns(plan, side) -%}
{%- set lines = plan.rows | selectattr(side) | list -%}
{%- if not lines -%} false {%- else -%}
coalesce(case
      {%- for line in lines %}
      when verdict = {{ text(line.verdict) }} then {% for path in line[side].at %}size({{ sent_image(path) }}.missing) > 0{{ ' or ' if not loop.last }}{% endfor %}
      {%- endfor %} end, false)
{%- endif -%}
{%- endmacro -%}
