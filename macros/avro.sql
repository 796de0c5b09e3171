{#- Messages in Avro: each is one record, whose images may be lists of values by position. -#}

{#- The record of each message as `m` and its images, as they are in the record, as `sent_images`; or as `parse_error` why there is not one record. -#}
{%- macro avro_records(plan) %}

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select *,
    {{ plan.avro.name }}(raw, own_schema) as record
  from {{ name(plan.source ~ '_messages') }}
),

-- The one record of each message, or why there is not one.
parsed as (
  select * except (record, damage),
    record.fields as m,
    {%- if plan.images.sent %}
    record.images as sent_images,
    {%- endif %}
    case
      when damage is not null then 'bad-avro'
      when octet_length(raw) = 0 then 'empty'
      else record.reason
    end as parse_error,
    {%- if plan.images.listed %}
    cast(array() as array<string>) as misfits,
    {%- endif %}
    coalesce(damage, record.detail) as read_detail
    {%- if plan.images.in_lists and plan.spec.drop %},{{ hidden_members(plan) }}{% endif %}
  from decoded
),
{%- endmacro -%}

{#- Every image as a map; null for one that has more or fewer values than columns. -#}
{%- macro named_images(plan) -%}
-- The images, column -> value.{{ '  [names]' if plan.images.positional }}
named_images as (
  select
    *
    {%- for image in plan.images.sent %},
    {{ image_with_names(image, plan.images) }} as {{ name(image.column) }}
    {%- endfor %}
  from classified
),
{%- endmacro -%}

{%- macro sent_image(path) -%} sent_images{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{%- macro image_with_names(image, images) -%}
{%- set sent = sent_image(image.path) -%}
{%- if not image.names -%} {{ sent }}.texts
{%- else -%}
{%- set columns = field(image.names) -%}
case
      when size({{ columns }}) <> size({{ sent }}.texts) then null
      {%- if images.may_lack_columns %}
      when size({{ sent }}.missing) > 0 then map_from_arrays(
        filter({{ columns }}, (c, i) -> not get({{ sent }}.missing, i)), filter({{ sent }}.texts, (v, i) -> not get({{ sent }}.missing, i)))
      {%- endif %}
      else map_from_arrays({{ columns }}, {{ sent }}.texts) end
{%- endif -%}
{%- endmacro -%}

{#- The columns that the images mark as `member`: `as_sent` because their values do not fit their class,
    `settled` because they are no texts, or `ambiguous` because their wall clock came twice in its zone. -#}
{%- macro marked_columns(plan, member) -%}
array_compact(flatten(array(
      {%- for path in plan.images.listed %}
      coalesce(get({{ listed(path) }}.{{ member }}, nth), array()){{ ',' if not loop.last }}
      {%- endfor %}
      {%- for image in plan.images.sent %}
      {% if image.names %}if({{ name(image.column) }} is null, array(), coalesce(transform({{ sent_image(image.path) }}.{{ member }}, i -> get({{ field(image.names) }}, i)), array()))
      {%- else %}coalesce({{ sent_image(image.path) }}.{{ member }}, array())
      {%- endif %}{{ ',' if not loop.last }}
      {%- endfor %})))
{%- endmacro -%}

{#- What the images of a message, or of one of its rows, say of their columns: names and expressions. -#}
{%- macro marks(plan) -%}
{%- set marks = [marked_columns(plan, 'as_sent') ~ ' as unfit_columns'] -%}
{%- if plan.images.may_be_ambiguous -%} {%- do marks.append(marked_columns(plan, 'ambiguous') ~ ' as ambiguous_columns') -%} {%- endif -%}
{%- if plan.values.readers -%} {%- do marks.append(marked_columns(plan, 'settled') ~ ' as settled_columns') -%} {%- endif -%}
{%- if plan.images.may_lack_columns -%} {%- do marks.append(missing_columns(plan) ~ ' as missing_columns') -%} {%- endif -%}
{{ marks | join(',\n    ') }}
{%- endmacro -%}

{%- macro listed(path) -%} {{ name((['listed'] + (path | list)) | join('_')) }} {%- endmacro -%}

{#- The columns that one of the images names and says that it was not sent. -#}
{%- macro missing_columns(plan) -%}
array_distinct(flatten(array(
      {%- for path in plan.images.listed %}
      coalesce(get({{ listed(path) }}.missing, nth), array()){{ ',' if not loop.last }}
      {%- endfor %}
      {%- for image in plan.images.sent %}
      {% set missing = sent_image(image.path) ~ '.missing' -%}
      coalesce({% if image.names %}filter({{ field(image.names) }}, (c, i) -> get({{ missing }}, i)){% else %}{{ missing }}{% endif %}, array()){{ ',' if not loop.last }}
      {%- endfor %})))
{%- endmacro -%}

{#- The readers of columns, without those of columns whose values are no texts. -#}
{%- macro readers_of_texts(readers) -%}
if(size(settled_columns) = 0, {{ readers }}, map_filter({{ readers }}, (c, r) -> not array_contains(settled_columns, c)))
{%- endmacro -%}

{#- Why a whole record cannot be used: an image has more or fewer values than columns, or a key column is not in the list of columns. -#}
{%- macro bad_records(plan) -%}
{%- for image in plan.images.positional %}
      when {{ is_uneven(image) }} then 'schema-mismatch'
{%- endfor %}
{%- for key in plan.keys.positions %}
      when {{ is_beyond(key) }} then 'schema-mismatch'
{%- endfor %}
{%- endmacro -%}

{%- macro is_uneven(image) -%} {{ sent_image(image.path) }}.texts is not null and {{ name(image.column) }} is null {%- endmacro -%}

{%- macro is_beyond(key) -%}
exists({{ field(key.indexes) }}, i -> i < 0 or i >= coalesce(size({{ field(key.names[0]) }}), 0))
{%- endmacro -%}

{%- macro error_detail(plan) -%}
coalesce(read_detail
      {%- for image in plan.images.positional -%}
      , if({{ is_uneven(image) }}, concat({{ text(image.path | join('.') ~ ': ') }}, size({{ sent_image(image.path) }}.texts), ' values for ', coalesce(size({{ field(image.names) }}), 0), ' columns'), null)
      {%- endfor %}
      {%- for key in plan.keys.positions -%}
      , if({{ is_beyond(key) }}, concat({{ text(key.indexes | join('.') ~ ': ') }}, array_join({{ field(key.indexes) }}, ','), ' of ', coalesce(size({{ field(key.names[0]) }}), 0), ' columns'), null)
      {%- endfor %})
{%- endmacro -%}
