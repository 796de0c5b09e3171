{#- The columns' types, and which reader makes a column's values canonical. -#}

{#- The vendor's own types, column -> type. -#}
{%- macro types(plan) -%}
{%- set spec = plan.spec -%}
{%- if spec.types and spec.types.at -%}
{%- set found = [] -%}
{%- for path in spec.types.at -%}{% do found.append(types_at(path, plan)) %}{%- endfor -%}
{{ clean(first_of(found), spec) }}
{%- elif plan.text_images -%}
map_concat({% for side in ('before', 'after') %}coalesce({{ types_of_texts(plan, side) }}, map()){{ ', ' if not loop.last }}{% endfor %})
{%- else -%} cast(null as map<string,string>)
{%- endif -%}
{%- endmacro -%}

{%- macro types_at(path, plan) -%}
{%- set types = plan.spec.types -%}
{%- set members = [] -%}
{%- for member in types.value -%}{% do members.append('t.' ~ name(member)) %}{%- endfor -%}
{%- if plan.avro -%} {{ types_by_position(path, plan) }}
{%- elif types.name -%}
map_from_entries(transform(filter({{ field(path) }}, t -> t.{{ name(types.name) }} is not null), t -> struct(t.{{ name(types.name) }}, {{ first_of(members) }})))
{%- elif plan.is_row_path(path) -%}
{%- set kind = 'map<string,' ~ ('struct<' ~ (types.value | map('name') | join(':string,')) ~ ':string>' if members else 'string') ~ '>' -%}
{%- set parsed -%} from_json({{ field(path) }}, {{ text(kind) }}, {{ json_options() }}) {%- endset -%}
{%- if members -%} transform_values({{ parsed }}, (c, t) -> {{ first_of(members) }}) {%- else -%} {{ parsed }} {%- endif -%}
{%- elif members -%} transform_values({{ field(path) }}, (c, t) -> {{ first_of(members) }})
{%- else -%} {{ field(path) }}
{%- endif -%}
{%- endmacro -%}

{#- The types of a record's columns stand in a list beside their names. -#}
{%- macro types_by_position(path, plan) -%}
{%- set types = plan.spec.types -%}
{%- if not types.name -%} {{ field(path) }}
{%- else -%}
{%- set names = field(path) ~ '.' ~ name(types.name) -%}
{%- set found = [] -%}
{%- for member in types.value -%}{% do found.append('if(size(' ~ names ~ ') = size(' ~ field(path) ~ '.' ~ name(member) ~ '), map_from_arrays(' ~ names ~ ', ' ~ field(path) ~ '.' ~ name(member) ~ '), null)') %}{%- endfor -%}
{{ first_of(found) }}
{%- endif -%}
{%- endmacro -%}

{#- Texts that tell the types with the values. -#}
{%- macro types_of_texts(plan, side) -%}
{%- set lines = plan.rows | selectattr(side) | selectattr(side ~ '.text') | list -%}
{%- if lines -%} case verdict{% for line in lines %} when {{ text(line.verdict) }} then {{ name(plan.text_image(line[side]).column) }}.types{% endfor %} end
{%- else -%} cast(null as map<string,string>)
{%- endif -%}
{%- endmacro -%}

{#- A type's name without what is in brackets and without `unsigned` and `zerofill`: where no type is named by several words, the first word. -#}
{%- macro bare_type(type, plan) -%}
{%- if plan.long_names -%}
trim(regexp_replace(regexp_replace(lower({{ type }}), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' '))
{%- else -%} substring_index(substring_index(lower({{ type }}), '(', 1), ' ', 1)
{%- endif -%}
{%- endmacro -%}

{#- For each column whose values have a reader: its name, the reader, the labels in its type. What a source declares goes before the message's types. -#}
{%- macro readers(plan) -%}
{%- set declared = plan.tables | selectattr('columns') | list -%}
{%- if not declared -%} {{ readers_of_types(plan) }}
{%- else -%}
concat(
      coalesce(case
        {%- for table in declared if table.readers %}
        when {{ table_is(table.name) }} then array(
          {%- for column, reader in table.readers.items() %}
          {{ declared_reader(table, column, reader, plan) }}{{ ',' if not loop.last }}
          {%- endfor %})
        {%- endfor %} end, array()),
      {% if plan.types -%}
      coalesce(filter(
        {{ readers_of_types(plan) | indent(4) }},
        r -> not coalesce(case
          {%- for table in declared %}
          when {{ table_is(table.name) }} then r.column in ({{ table.columns | map('sql_text') | join(', ') }})
          {%- endfor %} end, false)), array())
      {%- else -%} array() {%- endif -%}
      )
{%- endif -%}
{%- endmacro -%}

{%- macro declared_reader(table, column, reader, plan) -%}
struct({{ text(column) }} as column, {{ text(reader.word) }} as reader
{%- if plan.needs_labels -%}, {% if reader.labelled %}{{ labels(text(table.columns[column])) }}{% else %}cast(null as array<string>){% endif %} as labels {%- endif -%} )
{%- endmacro -%}

{%- macro readers_of_types(plan) -%}
{%- set entries -%}
filter(map_entries(types), t -> {{ bare_type('t.value', plan) }} in (
        {{ plan.type_names | map('sql_text') | join(', ') }}))
{%- endset -%}
{%- set found -%}
transform(
      {{ entries }},
      t -> struct(
        t.key as column,
        {{ reader_of('t.value', plan) }} as reader
        {%- if plan.needs_labels %},
        if({{ bare_type('t.value', plan) }} in ({{ plan.labelled | map('sql_text') | join(', ') }}), {{ labels('t.value') }}, null) as labels
        {%- endif %}))
{%- endset -%}
{%- if plan.types | length > 1 -%} filter({{ found }}, r -> r.reader is not null) {%- else -%} {{ found }} {%- endif -%}
{%- endmacro -%}

{%- macro reader_of(type, plan) -%}
{%- if plan.types | length == 1 and plan.types[0].text is none -%} {{ reader_in(type, plan.types[0], plan) }}
{%- else -%}
{%- set by = 'lower(' ~ plain(plan.spec.types.tables.by) ~ ')' -%}
case
          {%- for one in plan.types %}
          {{ ('when ' ~ fits(by, one.text | lower) ~ ' then') if one.text else 'else' }} {% if one.readers %}{{ reader_in(type, one, plan) | indent(2) }}{% else %}null{% endif %}
          {%- endfor %} end
{%- endif -%}
{%- endmacro -%}

{%- macro reader_in(type, one, plan) -%}
case
          {%- for reader, names in one.readers.items() %}
          when {{ bare_type(type, plan) }} in ({{ names | map('sql_text') | join(', ') }}) then {{ text(reader.word) }}
          {%- endfor %} end
{%- endmacro -%}

{#- The canonical text of the value `v`. -#}
{%- macro read_value(plan) -%}
case v.reader
  {%- for reader in plan.readers %}
  when {{ text(reader.word) }} then {{ attempts(reader) }}
  {%- endfor %} end
{%- endmacro -%}

{%- macro attempts(reader) -%}
{%- set tried = [] -%}
{%- for kind, zone in reader.attempts -%}{% do tried.append(macro('read_' ~ kind)('v.sent', zone)) %}{%- endfor -%}
{{ first_of(tried) }}
{%- endmacro -%}

{#- Binds what functions have made of an image to a name, outside of lambdas: inside of one Spark cannot call them. -#}
{%- macro called(plan, side) -%}
{%- if plan.python_readers -%}
get(transform(array(named_struct({% for kind in plan.python_readers %}{{ text(kind) }}, {{ kind }}_{{ side }}{{ ', ' if not loop.last }}{% endfor %})), called -> {% endif -%}
{%- endmacro -%}
