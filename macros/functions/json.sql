-- The text of a message in JSON: its numbers as they were sent, its characters, and that it is one document.
{%- set number -%}
-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE])
{%- endset %}
{%- macro with_whole_surrogates(json) -%}
if(contains({{ json }}, '\\u') and (contains({{ json }}, '\\ud') or contains({{ json }}, '\\uD')),
    regexp_replace(
      {{ json }},
      '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
      '$1\\\\ufffd'),
    {{ json }})
{%- endmacro %}

create function whole_surrogates(
  json string comment 'a text in JSON')
returns string
comment 'The text, with U+FFFD for each half of a surrogate pair that stands alone: it is not a character.'
return {{ with_whole_surrogates('json') }};

-- The first pattern is cheap and finds at least what the second finds, and all surrogates. What looks like a number inside a text gets quotes
-- too, but after a backslash: then the text ends there and a number follows, which is not JSON, so that the parser refuses the message.
create function exact_numbers(
  json string comment 'a text in JSON')
returns string
comment 'The text with quotes around each member that is a number but not a plain integer, which a parser would round, and with whole surrogates. It is no longer JSON if a text in it looks like such a member.'
return if(json rlike '[:\\\\](?=[-0-9\\su])(?:\\s*+(?:-0|-?[0-9]++[.eE][-+0-9eE]++)\\s*+[,}\\]]|u[dD])',
  regexp_replace(
    whole_surrogates(json),
    ':(?<![^\\\\]\\\\":)(\\s*+)(?=[-0-9])({{ number }})(?=\\s*+[,}\\]])',
    ':$1"$2"'),
  json);

-- Behind its last member stands the seal: a text of which the parser reads the seal ended there, and held nothing else.
create function sealed(
  json string comment 'the text of an object in JSON',
  seal bigint comment 'what the text cannot hold itself, such as the hash of the message')
returns string
comment 'The object with one more member, `_seal`, behind all others; a text that does not end in a brace as it is.'
return case
  when endswith(json, '}') then concat(cast(substring(cast(json as binary), 1, octet_length(json) - 1) as string), ',"_seal":"', seal, '"}')
  when endswith(rtrim(' \t\r\n', json), '}') then regexp_replace(json, '\\}[ \\t\\r\\n]*$', concat(',"_seal":"', seal, '"}'))
  else json end;

-- Under lambdas, so that Spark computes nothing of it for messages that do not need it.
create function marked(
  json string comment 'a text in JSON',
  number_mark string comment 'a text without quotes, backslashes and dollars',
  backslash_mark string comment 'another')
returns string
comment 'The text with quotes and a mark around each number that is not a plain integer, wherever it stands, and with the other mark behind each backslash of a text in it that looks like the escape of half a surrogate pair, as a parser writes them.'
return get(transform(transform(transform(array(json),
  text -> if(contains(text, '\\\\uD'),
    regexp_replace(
      text,
      '(?s)\\G((?:[^\\\\]++|\\\\[^\\\\]|\\\\\\\\(?!uD))*+)\\\\\\\\(?=uD)',
      concat('$1\\\\\\\\', backslash_mark)),
    text)),
  text -> {{ with_whole_surrogates('text') }}),
  text -> regexp_replace(
    text,
    '(?s)\\G((?:[^"\\-0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)({{ number }})',
    concat('$1"', number_mark, '$2"'))), 0);

create function why_not_read(
  raw string comment 'the text of a message',
  json string comment 'the same, as it is read')
returns string
comment 'The reason why a message is not one object in JSON: not-utf8, empty, not-an-object, trailing-text or not-json; null if it is one, or if there is no text.'
return {{ why_not_one_object('raw', 'json') }};
