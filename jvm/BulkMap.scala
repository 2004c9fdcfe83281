package org.apache.spark.sql.omnigraph

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInArrow}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.python.PythonSQLMetrics
import org.apache.spark.sql.execution.python.omnigraph.{Client, Workers}
import org.apache.spark.sql.internal.SQLConf
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
    val (called, made, given) = (function.func, output, child.schema)
    val (counted, caller) = (pythonMetrics, client)
    child.execute().mapPartitionsInternal { rows =>
      val most = SQLConf.get.arrowMaxBytesPerBatch
      val worker = Workers.mapping(called, given, counted, caller, sized = false)
      val task = TaskContext.get()
      worker
        .compute(new Portions(rows, most), task.partitionId(), task)
        .flatMap(rowsOf(_, made.length))
        .map(UnsafeProjection.create(made, made))
    }
  }

  /** Python answers with columns of one struct. */
  private def rowsOf(batch: ColumnarBatch, columns: Int): Iterator[InternalRow] = {
    val struct = batch.column(0).asInstanceOf[ArrowColumnVector]
    val flat = Array.tabulate[ColumnVector](columns)(struct.getChild)
    new ColumnarBatch(flat, batch.numRows()).rowIterator().asScala
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan =
    copy(child = newChild)
}

/** Rows, each as the one value of a row, in portions of about so many bytes. */
class Portions(rows: Iterator[InternalRow], most: Long) extends Iterator[Iterator[InternalRow]] {
  private val value = new GenericInternalRow(1)

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

  /** Where a row does not know its size, few come at once. */
  private def bytes(row: InternalRow): Long = row match {
    case known: UnsafeRow => known.getSizeInBytes.toLong
    case _ => most / 1024 + 1
  }
}
