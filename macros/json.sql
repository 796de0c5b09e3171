{#- Reading a message's text: exactly one JSON object, with the digits of its numbers as they were sent. -#}

{%- macro json(plan) -%} {{ 'coalesce(marked, quoted)' if plan.exact else 'raw' }} {%- endmacro -%}

{%- macro json_options() -%}
map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')
{%- endmacro -%}

{%- macro sealed_documents(json, plan) -%}
from_json(
      concat('[', {{ json }}, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<{{ field_type(plan.sealed_fields, 8) }}>',
      {{ json_options() }})
{%- endmacro -%}

{%- macro is_sealed(documents) -%}
(get({{ documents }}, 1).seal = cast(xxhash64(raw) as string) and size({{ documents }}) = 2 and get({{ documents }}, 0) is not null)
{%- endmacro -%}

{%- macro number() -%} -?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]) {%- endmacro -%}

{#- Every JSON number that is no plain integer and has the neighbours of a value, in quotes. What looks so inside a text is quoted too: the text
    ends there and a number follows, which is no JSON, so that the parser refuses it. -#}
{%- macro quoted_fractions() -%}
regexp_replace(
      if(contains(raw, '\\ud') or contains(raw, '\\uD'), {{ whole_surrogates('raw') }}, raw),
      '([:,\\[]\\s*+)({{ number() }})(?=\\s*+[,}\\]])',
      '$1"$2"')
{%- endmacro -%}

{%- macro count_of(sign) -%} octet_length(raw) - octet_length(replace(raw, '{{ sign }}', '')) {%- endmacro -%}

{#- How many objects and lists a document holds in the fields that are read. -#}
{%- macro objects(tree, path) -%}
{%- if tree == 'map<string,string>' -%} if({{ path }} is null, 0, 1)
{%- elif tree is string and tree.startswith('map<') -%} if({{ path }} is null, 0, 1 + size(array_compact(map_values({{ path }}))))
{%- elif tree is string and tree != 'string' and tree != 'array<string>' -%} if({{ path }} is null, 0, size(array_compact({{ path }})))
{%- elif tree is string -%} 0
{%- else -%}
if({{ path }} is null, 0, 1
{%- for part, branch in tree.items() -%}
{%- set inside = objects(branch, path ~ '.' ~ name(part)) -%}
{%- if inside.strip() != '0' %} + {{ inside }}{% endif -%}
{%- endfor -%}
)
{%- endif -%}
{%- endmacro -%}

{%- macro lists(tree, path) -%}
{%- if tree is string and tree.startswith('array<') -%} if({{ path }} is null, 0, 1)
{%- elif tree is string -%} 0
{%- else -%}
{%- set parts = [] -%}
{%- for part, branch in tree.items() -%}
{%- set inside = lists(branch, path ~ '.' ~ name(part)).strip() -%}
{%- if inside != '0' -%}{% do parts.append(inside) %}{%- endif -%}
{%- endfor -%}
{{ parts | join(' + ') or '0' }}
{%- endif -%}
{%- endmacro -%}

{#- Every JSON number that is no plain integer, in quotes behind a mark. Texts and plain integers are skipped; what is no JSON number stays. -#}
{%- macro marked_fractions() -%}
{%- set string -%} "(?:[^"\\\\]++|\\\\.)*+" {%- endset -%}
regexp_replace(
      {{ whole_surrogates('raw') }},
      '(?s)\\G((?:[^"\\-0-9]++|{{ string }}|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)({{ number() }})',
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
{%- elif tree == 'array<map<string,string>>' -%} transform({{ path }}, r -> transform_values(r, (c, v) -> {{ unmarked('v') }}))
{%- elif tree is string -%} {{ path }}
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
