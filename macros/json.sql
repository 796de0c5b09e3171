{#- Reading a message's text: exactly one JSON object, with the digits of its numbers as they were sent. -#}

{#- The one document of each message as `m`, or as `parse_error` why there is not one. -#}
{%- macro json_documents(plan) -%}
{%- set messages = name(plan.source ~ '_messages') -%}

{%- if plan.exact %}

-- Numbers that a JSON parser would round are put in quotes first. Inside a text this does harm: see `marked` below.  [message.numbers]
quoted as (
  select
    *,
    {{ quoted_fractions() }} as quoted
  from {{ messages }}
),
{%- endif %}

-- The fields that the format names. A seal follows the document: if it is in its place, there is nothing else in the message.
decoded as (
  select
    *,
    {{ sealed_documents('quoted' if plan.exact else 'raw', plan) }} as documents
  from {{ 'quoted' if plan.exact else messages }}
),
{%- if plan.exact %}

-- Where the quotes did harm, or values are objects or lists, the message is read again with marks that tell which quotes to remove.
marked as (
  select
    *,
    {{ sealed_documents('marked', plan) }} as marked_documents
  from (
    select
      *,
      case
        when octet_length(quoted) > octet_length(raw) and not coalesce({{ is_sealed('documents') }}, false) then {{ marked_fractions() }}
        when ({{ nests(plan.fields, 'get(documents, 0)') }}) and {{ may_lose_digits() }} then {{ marked_fractions() }}
      end as marked
    from decoded
  )
),
{%- endif %}

-- The one document of each message, or why there is not one.
parsed as (
  select
    * except (documents{{ ', marked_documents' if plan.exact }}),
    {%- if plan.exact %}
    case
      when parse_error is not null then null
      when marked_documents is null then get(documents, 0)
      else {{ unmarked_tree(plan.sealed_fields, 'get(marked_documents, 0)', 6) }}
    end as m
    {%- else %}
    if(parse_error is null, get(documents, 0), null) as m
    {%- endif %}
  from (
    select
      *,
      case
        when not is_valid_utf8(raw) then 'not-utf8'
        when {{ is_sealed('coalesce(marked_documents, documents)' if plan.exact else 'documents') }} then null
        {{- not_one_object(json(plan)) | indent(2) }}
      end as parse_error
    from {{ 'marked' if plan.exact else 'decoded' }}
  )
),
{%- endmacro -%}

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

{#- The message with quotes around each JSON number that is a member of an object and not a plain integer. What looks like one inside a text gets
    quotes too: then the text ends there and a number follows, which is not JSON, so that the parser refuses it. Most texts are not affected: a
    backslash stands before their quotes. -#}
{%- macro quoted_fractions() -%}
{%- set whole -%} if(contains(raw, '\\ud') or contains(raw, '\\uD'), {{ whole_surrogates('raw') }}, raw) {%- endset -%}
{%- set value -%} (?=[-0-9])({{ number() }})(?=\\s*+[,}\\]]) {%- endset -%}
regexp_replace(
      if(contains(raw, ' :') or contains(raw, '\t:') or contains(raw, '\n:') or contains(raw, '\r:'),
        regexp_replace({{ whole }}, '("\\s++:\\s*+){{ value }}', '$1"$2"'), {{ whole }}),
      '":(?<![^\\\\]\\\\":)(\\s*+){{ value }}',
      '":$1"$2"')
{%- endmacro -%}

{#- Whether a fraction, an exponent or minus zero may stand anywhere. -#}
{%- macro may_lose_digits() -%} raw rlike '[.eE\\-][-+0-9eE]++\\s*+[,}\\]]' {%- endmacro -%}

{#- Whether a value that is read is an object or a list that holds others, or is a text that looks like one. -#}
{%- macro nests(tree, path) -%}
{%- if tree == 'string' -%} startswith({{ path }}, '{') or startswith({{ path }}, '[')
{%- elif tree == 'array<string>' -%} exists({{ path }}, v -> startswith(v, '{') or startswith(v, '['))
{%- elif tree == 'map<string,string>' -%} exists(map_values({{ path }}), v -> startswith(v, '{') or startswith(v, '['))
{%- elif tree == 'array<map<string,string>>' -%} exists({{ path }}, r -> exists(map_values(r), v -> startswith(v, '{') or startswith(v, '[')))
{%- elif tree is string -%} false
{%- else -%}
{%- for part, branch in tree.items() %}
          {{ 'or ' if not loop.first }}coalesce({{ nests(branch, path ~ '.' ~ name(part)) }}, false)
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}

{#- The message with quotes and a mark before each JSON number that is not a plain integer. Texts, plain integers and what is not a JSON number stay. -#}
{%- macro marked_fractions() -%}
{%- set string -%} "(?:[^"\\\\]++|\\\\.)*+" {%- endset -%}
regexp_replace(
      {{ whole_surrogates('raw') }},
      '(?s)\\G((?:[^"\\-0-9]++|{{ string }}|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)({{ number() }})',
      '$1"\uFFFF$2"')
{%- endmacro -%}

{#- Half a surrogate pair is not a character: it becomes U+FFFD. -#}
{%- macro whole_surrogates(json) -%}
regexp_replace(
        {{ json }},
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd')
{%- endmacro -%}

{#- A text without marks: before a number the mark alone goes, inside a nested value the quotes go too. -#}
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

{#- The type of a tree of fields, as it stands between quotes; `between` stands before each field. -#}
{%- macro field_type(tree, indent, between='\n') -%}
{%- if tree is string -%} {{ tree }} {%- else -%}
struct<
{%- for part, branch in tree.items() -%}
{{ between }}{{ ' ' * indent }}{{ name(part) | sql_inner }} {{ field_type(branch, indent + 2, between) }}{{ ',' if not loop.last }}
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
