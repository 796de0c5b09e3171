# To be sourced: reads from tools/spark/versions what belongs to the Spark that SPARK names, by default the first.
# Sets spark, pyspark, kafka, delta and iceberg to versions, and suffix to what the names of its folders end in: nothing for the first.
sparks=() spark='' pyspark='' kafka='' delta='' iceberg='' suffix=''
while read -r one versions; do
    case $one in '#'* | '') continue ;; esac
    sparks+=("$one")
    [ "$one" = "${SPARK:-${sparks[0]}}" ] || continue
    spark=$one
    read -r pyspark kafka delta iceberg <<<"$versions"
done <tools/spark/versions
if [ -z "$spark" ]; then
    printf "error: the project is not tested with Spark '%s'\n  hint: give one of SPARK=%s, or add a line to tools/spark/versions\n" "$SPARK" "${sparks[*]}" >&2
    exit 2
fi
[ "$spark" = "${sparks[0]}" ] || suffix=-spark-$spark
