{#- Masks: what becomes of values that nobody may see, in rows that are otherwise as the contract has them (runner/compile/masks.py). -#}

{#- What a sealed text was, in bytes; null for another text. Sealed texts begin with nine bytes, in base64 with twelve characters. -#}
{%- macro seal_begins() -%} X'007365616C65643A31' {%- endmacro -%}
{%- macro unsealed(sealed) -%}
if(startswith({{ sealed }}, 'AHNlYWxlZDox'), coalesce(
  try_aes_decrypt(substr(unbase64({{ sealed }}), 10), mask_keys.seal, 'GCM'),
  try_aes_decrypt(substr(unbase64({{ sealed }}), 10), mask_keys.seal_before, 'GCM')), null)
{%- endmacro -%}

{#- Messages that land once more may have been kept sealed. -#}
{%- macro messages_with_keys(view) -%} {{ view }} cross join mask_keys {%- endmacro -%}
{%- macro opened_as_text() -%} coalesce(cast(opened_text(raw, mask_keys) as string), raw) {%- endmacro -%}
{%- macro opened_as_bytes() -%} if(startswith(raw, {{ seal_begins() }}), coalesce(opened_text(base64(raw), mask_keys), raw), raw) {%- endmacro -%}
{%- macro opened_place() -%} opened_origin(origin, mask_keys) {%- endmacro -%}

{#- The masks of the table of each row. Of a message whose table is not known nothing is shown. -#}
{%- macro masks_of_tables(tables) -%}
case
      when table_name is null then map({{ text(other_columns) }}, 'hmac')
      {%- for table in tables %}
      when {{ is_masked_table(table.name) }} then map({{ table.masks.items() | each('mask_in_map') | in_lines(8) }})
      {%- endfor %} end
{%- endmacro -%}
{%- set other_columns = '*' -%}
{%- macro is_masked_table(parts) -%}
slice(transform({{ table_of_row() }}, n -> lower(n)), -{{ parts | length }}, {{ parts | length }}) = {{ array_of(parts | map('lower') | map('sql_text')) }}
{%- endmacro -%}
{%- macro mask_in_map(mask) -%} {{ text(mask[0]) }}, {{ text(mask[1]) }} {%- endmacro -%}

{#- What functions of the project make of the values of columns. -#}
{%- macro given_by_functions(tables, image) -%}
case
      {%- for table, functions in tables %}
      when {{ is_masked_table(table.name) }} then map({{ functions | each('given_by_function', image) | in_lines(8) }})
      {%- endfor %} end
{%- endmacro -%}
{%- macro given_by_function(called, image) -%}
{{ text(called[0]) }}, {{ called[1] }}(small_{{ image }}[{{ text(called[0]) }}])
{%- endmacro -%}
{#- An image with names in small letters, each with the value of the first column that is called so. -#}
{%- macro in_small_letters(image) -%}
transform_keys(map_from_entries(reverse(map_entries({{ image }}))), (c, v) -> lower(c))
{%- endmacro -%}
{%- macro no_given() -%} cast(map() as map<string,string>) {%- endmacro -%}

{%- macro masked_image(image, given) -%} if(masks is null, {{ image }}, masked_columns({{ image }}, masks, {{ given }}, mask_keys)) {%- endmacro -%}
{%- macro masked_key(key) -%} if(masks is null, {{ key }}, masked_columns({{ key }}, key_masks, {{ no_given() }}, mask_keys)) {%- endmacro -%}
{%- macro masks_in_keys() -%} masks_of_key(masks) {%- endmacro -%}
{%- macro if_masked(masked, column) -%} if(masks is null, {{ column }}, {{ masked }}) {%- endmacro -%}
{%- macro hidden_changed() -%} {{ if_masked('masked_names(changed, masks)', 'changed') }} {%- endmacro -%}
{%- macro hidden_types() -%} {{ if_masked('masked_types(types, masks)', 'types') }} {%- endmacro -%}
{%- macro hidden_statement() -%} {{ if_masked('statement_without_values(statement, op)', 'statement') }} {%- endmacro -%}
{%- macro hidden_detail() -%} {{ if_masked('cast(null as string)', 'detail') }} {%- endmacro -%}
{%- macro hidden_origin() -%} if(masks is not null and is_masked_key(key, masks), sealed_origin(origin, mask_keys), origin) {%- endmacro -%}

{#- The text of a message, and how it is written. One that may hold several messages is always sealed. -#}
{%- macro is_sealed() -%} masks is not null {%- endmacro -%}
{%- macro is_sealed_always() -%} raw is not null {%- endmacro -%}
{%- macro hidden_raw(is_sealed) -%}
if({{ is_sealed }}, sealed_text(if(meta['raw_encoding'] = 'base64', unbase64(raw), cast(raw as binary)), mask_keys), raw)
{%- endmacro -%}

{#- Images in `meta`, in JSON. -#}
{%- macro columns_in_meta(entry) -%}
if(masks is null, null, masked_columns(from_json(meta[{{ text(entry) }}], 'map<string,string>'), masks, {{ no_given() }}, mask_keys))
{%- endmacro -%}
{%- macro masked_meta(images, texts) -%}
if(masks is null, meta, {{ meta_with(images, 'map_filter(meta, (k, v) -> ' ~ 'k not in (' ~ texts | map('sql_text') | join(', ') ~ '))' if texts else 'meta') }})
{%- endmacro -%}
{%- macro meta_with(images, meta) -%}
{%- if images -%}
transform_values({{ meta }}, (k, v) -> case k{% for entry in images %} when {{ text(entry) }} then to_json({{ name('meta_' ~ entry) }}, map('ignoreNullFields', 'false')){% endfor %} else v end)
{%- else -%} {{ meta }} {%- endif -%}
{%- endmacro -%}
{%- macro hidden_meta(is_sealed) -%}
if({{ is_sealed }} and raw is not null, map_concat(coalesce(meta, map()), map('raw_encoding', 'sealed')), meta)
{%- endmacro -%}
