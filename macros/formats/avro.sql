{#- Messages in Avro: each is one record, whose images may be lists of values by position. Each macro prints one expression. -#}

{%- macro all_except(columns) -%} * except ({{ columns | join(', ') }}) {%- endmacro -%}

{%- macro why_no_record() -%}
case
      when damage is not null then 'bad-avro'
      when octet_length(raw) = 0 then 'empty'
      else record.reason
    end
{%- endmacro -%}

{#- An image as a map; null for one that has more or fewer values than columns. -#}
{%- macro map_of_values(columns, sent) -%}
case
      when size({{ columns }}) <> size({{ sent }}.texts) then null
      else map_from_arrays({{ columns }}, {{ sent }}.texts) end
{%- endmacro -%}
{%- macro map_of_some_values(columns, sent) -%}
case
      when size({{ columns }}) <> size({{ sent }}.texts) then null
      when size({{ sent }}.missing) > 0 then map_from_arrays(
        filter({{ columns }}, (c, i) -> not get({{ sent }}.missing, i)), filter({{ sent }}.texts, (v, i) -> not get({{ sent }}.missing, i)))
      else map_from_arrays({{ columns }}, {{ sent }}.texts) end
{%- endmacro -%}

{#- Columns that images mark. -#}
{%- macro all_marked(lists) -%} array_compact(flatten({{ called_in_lines('array', lists) }})) {%- endmacro -%}
{%- macro all_missing(lists) -%} array_distinct(flatten({{ called_in_lines('array', lists) }})) {%- endmacro -%}
{%- macro or_none(columns) -%} coalesce({{ columns }}, array()) {%- endmacro -%}
{%- macro marked_in_row(list, mark) -%} coalesce(get({{ list }}.{{ mark }}, nth), array()) {%- endmacro -%}
{%- macro marked_by_index(map, marked, columns) -%}
if({{ map }} is null, array(), coalesce(transform({{ marked }}, i -> get({{ columns }}, i)), array()))
{%- endmacro -%}
{%- macro missing_names(columns, missing) -%} filter({{ columns }}, (c, i) -> get({{ missing }}, i)) {%- endmacro -%}

{%- macro is_uneven(sent, map) -%} {{ sent }}.texts is not null and {{ map }} is null {%- endmacro -%}
{%- macro values_of_columns(path, sent, columns) -%}
concat({{ text(path ~ ': ') }}, size({{ sent }}.texts), ' values for ', coalesce(size({{ columns }}), 0), ' columns')
{%- endmacro -%}
