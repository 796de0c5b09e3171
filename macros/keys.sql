{#- Keys and extras. -#}

{%- macro table_is(name) -%} (table_path = {{ text(name) }} or endswith(table_path, {{ text('.' ~ name) }})) {%- endmacro -%}

{#- The names of the key columns: those that the message names, else those that the source declares for the table. -#}
{%- macro key_names(plan) -%}
{%- set choices = [] -%}
{%- for key in plan.spec.key if not key.image -%}{% do choices.append(named_columns(key, plan.spec)) %}{%- endfor -%}
{%- if plan.tables | selectattr('key') | list -%}{% do choices.append(declared_key(plan)) %}{%- endif -%}
{%- if choices | length > 1 -%} coalesce({% for choice in choices %}{{ 'nullif(' if not loop.last }}{{ choice }}{{ ', cast(array() as array<string>))' if not loop.last }}{{ ', ' if not loop.last }}{% endfor %})
{%- elif choices -%} {{ choices[0] }}
{%- else -%} cast(null as array<string>) {%- endif -%}
{%- endmacro -%}

{%- macro named_columns(key, spec) -%}
{%- if key.columns -%} array({{ key.columns | map('sql_text') | join(', ') }})
{%- elif key.indexes -%} transform({{ field(key.indexes) }}, i -> get({{ field(key.names[0]) }}, cast(i as int)))
{%- elif key.split -%} split(nullif({{ first_field(key.names) }}, ''), {{ split_pattern(key) }}, -1)
{%- else -%} array_except({{ first_names(key) }}, array(cast(null as string){% for dropped in spec.drop %}, {{ 'if(' ~ conditions(dropped) ~ ', ' ~ text(dropped.name) ~ ', null)' if dropped.conditions else text(dropped.name) }}{% endfor %}))
{%- endif -%}
{%- endmacro -%}

{%- macro first_names(key) -%}
{%- if not key.text -%} {{ first_field(key.names) }}
{%- else -%}
{%- set found = [] -%}
{%- for path in key.names -%}{% do found.append(names_in_text(path)) %}{%- endfor -%}
{{ first_of(found) }}
{%- endif -%}
{%- endmacro -%}

{#- A member of the document in a text. -#}
{%- macro names_in_text(path) -%}
from_json({{ field(path[:-1]) }}, {{ text('struct<' ~ name(path[-1]) ~ ':array<string>>') }}, {{ json_options() }}).{{ name(path[-1]) }}
{%- endmacro -%}

{%- macro split_pattern(key) -%} {{ text('\\Q' ~ key.split ~ '\\E') }} {%- endmacro -%}

{%- macro declared_key(plan) -%}
case
      {%- for table in plan.tables if table.key %} when {{ table_is(table.name) | replace('table_path', path_of_table(plan.spec)) }} then array({{ table.key | map('sql_text') | join(', ') }}){% endfor %} end
{%- endmacro -%}

{%- macro path_of_table(spec) -%}
concat_ws('.', {% for column in ('tenant', 'db_name', 'schema_name', 'table_name') if spec.columns.get(column) %}{{ given(spec.columns.get(column)) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{#- A key that is a document of its own. -#}
{%- macro key_image(key, plan) -%}
{%- if key.image.text -%} {{ name(plan.text_image(key.image).column) }}.values {%- else -%} {{ first_field(key.image.at) }} {%- endif -%}
{%- endmacro -%}

{#- The vendor's joined values of the key, where their number is that of the names. -#}
{%- macro joined_values(plan) -%}
{%- for key in plan.spec.key if key.split -%} split({{ first_field(key.values) }}, {{ split_pattern(key) }}, -1) {%- endfor -%}
{%- endmacro -%}

{%- macro key_of(plan) -%}
{%- set joined = joined_values(plan) -%}
{%- set has_image = plan.spec.key | selectattr('image') | list -%}
case
      {%- if has_image %} when kind = 'row' and size(key_image) > 0 then key_image{% endif %}
      when kind = 'row' and size(key_names) > 0 and forall(key_names, k -> map_contains_key(coalesce(after, before), k)) then
      map_from_arrays(key_names, transform(key_names, k -> coalesce(after, before)[k]))
      {%- if joined %}
      when kind = 'row' and size(key_names) > 0 and size(array_distinct(key_names)) = size(key_names) and size({{ joined }}) = size(key_names) then
      map_from_arrays(key_names, transform(key_names, (k, i) -> if(map_contains_key(coalesce(after, before), k), coalesce(after, before)[k], get({{ joined }}, i))))
      {%- endif %} end
{%- endmacro -%}

{#- The key before an update, if it can differ from the one after it. -#}
{%- macro key_before(plan) -%}
case when op = 'update' and arrays_overlap(key_names, map_keys(sent_before)) and forall(key_names, k -> map_contains_key(before, k)) then
      map_from_arrays(key_names, transform(key_names, k -> before[k])) end
{%- endmacro -%}

{%- macro meta(plan) -%}
{%- set spec = plan.spec -%}
map(
      {%- for entry, value in spec.meta.items() %}
      {{ text(entry) }}, {{ name('meta_' ~ entry) if entry in plan.row_meta else given(value) }},
      {%- endfor %}
      {%- if spec.key or plan.tables | selectattr('key') | list %}
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      {%- endif %}
      {%- if plan.readers or plan.sent_images %}
      'as_sent', {{ as_sent(plan) }},
      {%- endif %}
      'raw_encoding', {{ "if(kind = 'dead_letter', 'base64', null)" if plan.avro else "if(reason = 'not-utf8', 'base64', null)" }})
{%- endmacro -%}

{#- The columns whose values their readers could not read. -#}
{%- macro as_sent(plan) -%}
{%- set unread -%} transform(filter(flatten(rewritten), v -> v.text is null), v -> v.column) {%- endset -%}
{%- set columns -%}
{%- if not plan.sent_images -%} {{ unread }} {%- elif plan.readers -%} concat(coalesce({{ unread }}, array()), if(kind = 'row', unfit, array())) {%- else -%} if(kind = 'row', unfit, array()) {%- endif -%}
{%- endset -%}
array_join(sort_array(array_distinct({{ columns }})), ',')
{%- endmacro -%}
