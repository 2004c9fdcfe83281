package org.apache.spark.sql.omnigraph

import java.util.OptionalLong

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.{Column, SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.expressions.aggregate.{Aggregation, CountStar}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable
import org.apache.spark.sql.execution.datasources.v2.python.omnigraph.{Origin, Planned}
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Reads of our own source become reads of a `GraphTable`, to which Spark pushes what it can; every
  * other plan is left as it is. This happens while a plan is optimised, so it holds for one query and
  * no other.
  */
class GraphTables(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!Extension.isOn(session)) plan
    else
      plan.transform {
        case found: DataSourceV2Relation if takes(found.table) =>
          found.copy(table = new GraphTable(found.table.asInstanceOf[PythonTable]))
      }

  private def takes(table: Table): Boolean =
    table.isInstanceOf[PythonTable] && table.name() == "omnigraph"
}

/** A type at a ref: what Spark knows of it while it plans a query. */
class GraphTable(inner: PythonTable) extends SupportsRead {
  override def name(): String = inner.name()
  override def columns(): Array[Column] = inner.columns()
  override def capabilities(): java.util.Set[TableCapability] = inner.capabilities()
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val origin = new Origin(inner, options)
    new GraphScanBuilder(PlannedReads.of(origin), origin.schema, options.containsKey("where"))
  }
}

/** What one query needs of a table. Spark tests all conditions again, those that were pushed too, so a
  * test here may keep a row too many, and never one too few.
  */
class GraphScanBuilder(reads: PlannedReads, whole: StructType, conditional: Boolean)
    extends ScanBuilder
    with SupportsPushDownV2Filters
    with SupportsPushDownRequiredColumns
    with SupportsPushDownLimit
    with SupportsPushDownAggregates {
  private var wanted = Wanted(whole, Nil, None)
  private var counted = 0

  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    wanted = wanted.copy(tests = predicates.toSeq.flatMap(Pushed.test(_, whole)))
    predicates
  }

  override def pushedPredicates(): Array[Predicate] = Array.empty

  override def pruneColumns(required: StructType): Unit = wanted = wanted.copy(schema = required)

  override def pushLimit(limit: Int): Boolean = {
    wanted = wanted.copy(limit = Some(limit))
    true
  }

  override def supportCompletePushDown(aggregation: Aggregation): Boolean = isCount(aggregation)

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    val taken = isCount(aggregation)
    if (taken) counted = aggregation.aggregateExpressions.length
    taken
  }

  private def isCount(aggregation: Aggregation): Boolean =
    !conditional && wanted.tests.isEmpty && aggregation.groupByExpressions.isEmpty &&
      aggregation.aggregateExpressions.nonEmpty &&
      aggregation.aggregateExpressions.forall(_.isInstanceOf[CountStar])

  override def build(): Scan =
    if (counted > 0) new CountScan(reads, whole, counted) else new GraphScan(reads, wanted)
}

/** The number of rows, which is known of a version without reading any. */
class CountScan(reads: PlannedReads, whole: StructType, times: Int) extends LocalScan {
  override def readSchema(): StructType =
    StructType((0 until times).map(place => StructField(s"count_$place", LongType, nullable = false)))
  override def rows(): Array[InternalRow] = {
    val rows = reads.info(Wanted(StructType(Nil), Nil, None), whole).rows
    Array(InternalRow.fromSeq(Seq.fill(times)(rows)))
  }
  override def description(): String = "(Python, counted)"
}

/** A scan is equal to another that reads the same rows, so a plan that needs them twice has them once. */
class GraphScan(reads: PlannedReads, val wanted: Wanted)
    extends Scan
    with SupportsReportStatistics {
  lazy val info: Planned = reads.info(wanted)

  override def readSchema(): StructType = wanted.schema

  override def description(): String = {
    val tests = wanted.tests.map(_.text)
    val told = if (tests.isEmpty) "" else tests.mkString(", pushed: [", ", ", "]")
    val limit = wanted.limit.fold("")(", limit: " + _)
    s"(Python, columnar) ${wanted.schema.simpleString}$told$limit"
  }

  override def supportedCustomMetrics(): Array[CustomMetric] = reads.source.createPythonMetrics()

  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    Scan.ColumnarSupportMode.SUPPORTED

  override def toBatch: Batch = GraphBatch(info.identity, wanted)(reads, info)

  /** Of all rows, as if nothing were tested: at least what is read. */
  override def estimateStatistics(): Statistics = new Statistics {
    override def numRows(): OptionalLong = OptionalLong.of(info.rows)
    override def sizeInBytes(): OptionalLong =
      OptionalLong.of(math.max(info.rows * (wanted.schema.defaultSize + 8L), info.bytes))
  }

  override def equals(other: Any): Boolean = other match {
    case scan: GraphScan => scan.wanted == wanted && scan.info.identity == info.identity
    case _ => false
  }

  override def hashCode(): Int = wanted.hashCode()
}
