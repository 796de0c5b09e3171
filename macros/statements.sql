{#- What can be read from a statement without its dialect. -#}

{#- The words of a statement, with one blank between two and without comments and texts. What `/*!` begins is carried out. A quoted name is one word
    that begins with ` and has blanks that do not break. -#}
{%- macro words_of(statement) -%}
array_join(transform(
    filter(
      regexp_extract_all({{ statement }}, concat(
        '(?s)\'(?:[^\'\\\\]|\\\\.|\'\')*+\'?+|"(?:[^"]|"")*+"|`(?:[^`]|``)*+`|\\[[^\\]]*+\\]|',
        '/\\*M?![0-9]*+|/\\*.*?\\*/|\\*/|--[^\\n]*+|#[^\\n]*+|[\\p{L}\\p{N}_$@][\\p{L}\\p{N}_$@#]*+|\\S'), 0),
      w -> not w rlike '^(?:--|#|/\\*|\\*/|\')'),
    w -> if(w rlike '^["`\\[].', concat('`', replace(replace(replace(substr(w, 2, length(w) - 2), ' ', '\u00a0'), '``', '`'), '""', '"')), w)), ' ')
{%- endmacro -%}

{#- The tables that a statement names, in its order and as it names them, without quotes; [] if it names none. -#}
{%- macro tables_named_in(statement) -%}
{%- set a_name -%} ([`\\p{L}\\p{N}_$@]\\S*+(?: \\. [`\\p{L}\\p{N}_$@]\\S*+)*+) {%- endset -%}
array_distinct(transform(
  flatten(transform(
    split(regexp_replace({{ words_of(statement) }}, '(?i)^set statement .*? for ', ''), '(?:^| );(?: |$)'),
    one -> if(one rlike '(?i)^(?:truncate|rename|drop (?:foreign )?tables?) ',
      regexp_extract_all(one, concat(
        '(?i)(?:^(?:truncate(?: table)?|drop (?:foreign )?tables?|rename(?: tables?)?)(?: if exists)?(?: only)?| ,| to)',
        ' {{ a_name }}'), 1),
      regexp_extract_all(one, concat(
        '(?i)(?:^alter (?:(?:online|offline|ignore|foreign) )*+table(?: if exists)?(?: only)?',
        '|^create (?:or replace )?(?:(?:unlogged|foreign|external) )*+table(?: if not exists)?',
        '|^(?:create|drop) [^(]*?(?:index|trigger)(?: [^(]*?)? on(?: only)?| like| references| with table',
        '| rename(?: to| as| =)?(?! (?:to|as|=|column|index|key|constraint|partition)\\b))',
        ' {{ a_name }}(?! to )'), 1)))),
  named -> replace(replace(regexp_replace(named, '(?:^|(?<= \\. ))`', ''), ' . ', '.'), '\u00a0', ' ')))
{%- endmacro -%}
