{#- The columns' types, and which reader makes a column's values canonical. -#}

{#- The vendor's own types, column -> type. -#}
{%- macro types(plan) -%}
{%- if plan.types_places -%}
{%- set sent -%} {%- call(place) first_of(plan.types_places) -%} {{ types_at(place) }} {%- endcall -%} {%- endset -%}
{{ clean(sent, plan) }}
{%- elif plan.images.texts -%}
map_concat(coalesce({{ types_in_texts(plan.images.before) }}, map()), coalesce({{ types_in_texts(plan.images.after) }}, map()))
{%- else -%} cast(null as map<string,string>)
{%- endif -%}
{%- endmacro -%}

{%- macro types_at(place) -%}
{%- set sent = field(place.path) -%}
{%- if place.form == 'map' -%} {{ sent }}
{%- elif place.form == 'objects' -%} transform_values({{ sent }}, (c, t) -> {{ type_in_object(place) }})
{%- elif place.form == 'list' -%}
map_from_entries(transform(filter({{ sent }}, t -> t.{{ name(place.name) }} is not null), t -> struct(t.{{ name(place.name) }}, {{ type_in_object(place) }})))
{%- elif place.form == 'lists' -%}
{%- call(member) first_of(place.members) -%} {{ types_beside_names(sent ~ '.' ~ name(place.name), sent ~ '.' ~ name(member)) }} {%- endcall -%}
{%- elif place.members -%}
transform_values(from_json({{ sent }}, {{ text('map<string,struct<' ~ (place.members | map('name') | join(':string,')) ~ ':string>>') }}, {{ json_options() }}), (c, t) -> {{ type_in_object(place) }})
{%- else -%} from_json({{ sent }}, 'map<string,string>', {{ json_options() }})
{%- endif -%}
{%- endmacro -%}

{%- macro type_in_object(place) -%} {%- call(member) first_of(place.members) -%} t.{{ name(member) }} {%- endcall -%} {%- endmacro -%}

{%- macro types_beside_names(names, types) -%} if(size({{ names }}) = size({{ types }}), map_from_arrays({{ names }}, {{ types }}), null) {%- endmacro -%}

{#- Types that stand in texts beside the values. -#}
{%- macro types_in_texts(side) -%}
{%- if side.texts -%} case verdict{% for verdict, column in side.texts.items() %} when {{ text(verdict) }} then {{ name(column) }}.types{% endfor %} end
{%- else -%} cast(null as map<string,string>)
{%- endif -%}
{%- endmacro -%}

{#- A type's name without what is in brackets and without `unsigned` and `zerofill`: where no type's name has several words, the first word. -#}
{%- macro bare_type(type, by_type) -%}
{%- if by_type.may_be_long -%}
trim(regexp_replace(regexp_replace(lower({{ type }}), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' '))
{%- else -%} substring_index(substring_index(lower({{ type }}), '(', 1), ' ', 1)
{%- endif -%}
{%- endmacro -%}

{#- For each column whose values have a reader: its name, the reader, the labels in its type. What a source declares goes before the message's types. -#}
{%- macro readers(plan) -%}
{%- if not plan.tables.typed -%} {{ readers_of_types(plan) }}
{%- else -%}
concat(
      coalesce(case
        {%- for table in plan.tables.typed if table.readers %}
        when {{ table_is('table_path', table.name) }} then array(
          {%- for column, reader in table.readers.items() %}
          {{ declared_reader(table, column, reader, plan) }}{{ ',' if not loop.last }}
          {%- endfor %})
        {%- endfor %} end, array()),
      {% if plan.values.by_type -%}
      coalesce(filter(
        {{ readers_of_types(plan) | indent(4) }},
        r -> not coalesce(case
          {%- for table in plan.tables.typed %}
          when {{ table_is('table_path', table.name) }} then r.column in ({{ table.columns | map('sql_text') | join(', ') }})
          {%- endfor %} end, false)), array())
      {%- else -%} array() {%- endif -%}
      )
{%- endif -%}
{%- endmacro -%}

{%- macro declared_reader(table, column, reader, plan) -%}
struct({{ text(column) }} as column, {{ text(reader.word) }} as reader
{%- if plan.values.need_labels -%}, {% if reader.labelled %}{{ labels(text(table.columns[column])) }}{% else %}cast(null as array<string>){% endif %} as labels {%- endif -%} )
{%- endmacro -%}

{%- macro readers_of_types(plan) -%}
{%- set by_type = plan.values.by_type -%}
{{ 'filter(' if by_type.by }}transform(
      filter(map_entries(types), t -> {{ bare_type('t.value', by_type) }} in (
        {{ by_type.names | map('sql_text') | join(', ') }})),
      t -> struct(
        t.key as column,
        {{ reader_of('t.value', by_type) }} as reader
        {%- if plan.values.need_labels %},
        if({{ bare_type('t.value', by_type) }} in ({{ by_type.labelled | map('sql_text') | join(', ') }}), {{ labels('t.value') }}, null) as labels
        {%- endif %})){{ ', r -> r.reader is not null)' if by_type.by }}
{%- endmacro -%}

{%- macro reader_of(type, by_type) -%}
{%- if not by_type.by -%} {{ reader_in(type, by_type.cases[0], by_type) }}
{%- else -%}
{%- set by -%} lower({{ plain(by_type.by) }}) {%- endset -%}
case
          {%- for one in by_type.cases %}
          {% if one.text %}when {{ fits(by, one.text | lower) }} then{% else %}else{% endif %} {% if one.readers %}{{ reader_in(type, one, by_type) | indent(2) }}{% else %}null{% endif %}
          {%- endfor %} end
{%- endif -%}
{%- endmacro -%}

{%- macro reader_in(type, one, by_type) -%}
case
          {%- for reader, names in one.readers.items() %}
          when {{ bare_type(type, by_type) }} in ({{ names | map('sql_text') | join(', ') }}) then {{ text(reader.word) }}
          {%- endfor %} end
{%- endmacro -%}

{#- The canonical text of the value `v`. -#}
{%- macro read_value(readers) -%}
case v.reader
  {%- for reader in readers %}
  when {{ text(reader.word) }} then {% call(attempt) first_of(reader.attempts) %}{{ macro('read_' ~ attempt.kind)('v.sent', attempt.zone) }}{% endcall %}
  {%- endfor %} end
{%- endmacro -%}

{#- Binds what functions have made of an image to a name, outside of lambdas: inside of one Spark cannot call them. -#}
{%- macro bound_results(plan, side) -%}
{%- if plan.values.python -%}
get(transform(array(named_struct({% for one in plan.values.python %}{{ text(one.function) }}, {{ one.function }}_{{ side }}{{ ', ' if not loop.last }}{% endfor %})), results -> {% endif -%}
{%- endmacro -%}
