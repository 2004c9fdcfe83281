package org.apache.spark.sql.omnigraph

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.api.python.PythonFunction
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInArrow}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.python.PythonSQLMetrics
import org.apache.spark.sql.execution.python.omnigraph.{Client, Workers}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** Plans `mapInArrow` of the function by which a load reads a DataFrame, known by its name. */
class BulkStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case MapInArrow(function: PythonUDF, output, child, false, None) if takes(function) =>
      Seq(BulkMapExec(function, output, planLater(child)))
    case _ => Nil
  }

  private def takes(function: PythonUDF): Boolean =
    function.name == "omnigraph_read" && Extension.isOn(session)
}

/** As Spark's own, which asks after every row how large the batch is: that is nearly half of what it
  * spends. Here rows are added up as they come.
  */
case class BulkMapExec(function: PythonUDF, output: Seq[Attribute], child: SparkPlan)
    extends UnaryExecNode
    with PythonSQLMetrics {
  override def producedAttributes: AttributeSet = AttributeSet(output)

  private val client = Client.of(session)

  override protected def doExecute(): RDD[InternalRow] = {
    val map = new BulkMap(function.func, child.schema, output, conf.arrowMaxBytesPerBatch, client)
    val counted = pythonMetrics
    child.execute().mapPartitionsInternal(map(_, counted))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan =
    copy(child = newChild)
}

/** What a task does: it travels, and the plan does not. */
class BulkMap(
    function: PythonFunction,
    input: StructType,
    output: Seq[Attribute],
    most: Long,
    client: Client
) extends Serializable {
  def apply(rows: Iterator[InternalRow], metrics: Map[String, SQLMetric]): Iterator[InternalRow] = {
    val worker = Workers.mapping(function, input, metrics, client, sized = false)
    val task = TaskContext.get()
    worker
      .compute(new Portions(rows, input, most), task.partitionId(), task)
      .flatMap(answers)
      .map(UnsafeProjection.create(output, output))
  }

  /** Python answers with columns of one struct. */
  private def answers(batch: ColumnarBatch): Iterator[InternalRow] = {
    val struct = batch.column(0).asInstanceOf[ArrowColumnVector]
    val flat = Array.tabulate[ColumnVector](output.length)(struct.getChild)
    new ColumnarBatch(flat, batch.numRows()).rowIterator().asScala
  }
}

/** Rows, each as the one value of a row, in portions of about so many bytes. */
class Portions(rows: Iterator[InternalRow], schema: StructType, most: Long)
    extends Iterator[Iterator[InternalRow]] {
  private val value = new GenericInternalRow(1)
  private lazy val toUnsafe = UnsafeProjection.create(schema)

  override def hasNext: Boolean = rows.hasNext

  override def next(): Iterator[InternalRow] = new Iterator[InternalRow] {
    private var held = 0L

    override def hasNext: Boolean = held < most && rows.hasNext

    override def next(): InternalRow = {
      val row = rows.next()
      held += bytes(row)
      value.update(0, row)
      value
    }
  }

  private def bytes(row: InternalRow): Int = row match {
    case known: UnsafeRow => known.getSizeInBytes
    case other => toUnsafe(other).getSizeInBytes
  }
}
