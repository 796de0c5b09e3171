{#- Dead letters that are alike, and those that are expected. -#}

{#- The shape of a detail, which is the same for details that are alike: numbers are `#`, quoted texts of more than 30 characters `"..."`, and a shape has at most 80 characters.
    The shape of a shape is this shape. Texts between quotes are found from the left, so that what stands between two of them is not taken for one. -#}
{%- macro detail_shape(detail) -%}
left(regexp_replace(regexp_replace(left({{ detail }}, 4000), r'\G((?:[^"]++|"[^"]{0,30}")*+)"[^"]{31,}(?:"|\z)', r'$1"..."'), '[0-9]+', '#'), 80)
{%- endmacro -%}

{#- Whether a row of a changelog is a dead letter that one of these waivers waives on a day; never null. -#}
{%- macro is_waived(waivers, day='current_date()') -%} coalesce({{ (waivers | each('waives', day) | join(' or ')) or 'false' }}, false) {%- endmacro -%}
{%- macro waives(waiver, day) -%}
(reason = {{ text(waiver.reason) }}
{%- if waiver.detail %} and {{ detail_shape('detail') }} = {{ detail_shape(text(waiver.detail)) }}{% endif %}
{%- if waiver.table %} and {{ ends_with_names(waiver.table) }}{% endif %}
{%- if waiver.until %} and {{ day }} <= date {{ text(waiver.until | string) }}{% endif %})
{%- endmacro -%}
{%- macro ends_with_names(parts) -%} slice({{ table_of_row() }}, -{{ parts | length }}, {{ parts | length }}) = array({{ parts | map('sql_text') | join(', ') }}) {%- endmacro -%}
