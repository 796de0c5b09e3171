{#- Seeds: files of comma-separated values. -#}

{#- The rows of a seed: `types` maps its columns to types; the view has all values as texts. -#}
{%- macro seed_rows(view, types) -%}
select
  {%- for column, type in types.items() %}
  {% if type == 'string' %}{{ name(column) }}{% else %}cast({{ name(column) }} as {{ type }}) as {{ name(column) }}{% endif %}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ name(view) }}
{%- endmacro -%}
