{{ config(materialized='table') }} select if(n > 0, raise_error('too many'), n) as n from {{ ref('counted') }}
