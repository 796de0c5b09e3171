{#- The settings that the compiled SQL needs to mean what it says. -#}
{%- macro header(plan) -%}
-- {{ plan.source }}_to_changelog: the messages of source {{ plan.source }}, as rows of the changelog
-- format     {{ plan.spec.name }}: {{ plan.spec.about }}
-- reads      {{ plan.source }}_messages: {% for column, type in plan.reads.items() %}{{ column }} {{ type }}{{ ', ' if not loop.last }}{% endfor %}
{% if plan.functions %}-- functions  Spark's own, and {{ plan.functions | join(', ') }} of runner/functions
{% endif -%}
-- zone       {{ plan.zone.name if plan.zone else 'not declared: local times stay wall clock' }}
{% endmacro -%}
