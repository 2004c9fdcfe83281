package org.apache.spark.sql.omnigraph

import java.util.WeakHashMap

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader}
import org.apache.spark.sql.connector.read.PartitionReaderFactory
import org.apache.spark.sql.execution.datasources.v2.python._
import org.apache.spark.sql.execution.datasources.v2.python.omnigraph.{Origin, Planned, Planning}
import org.apache.spark.sql.execution.python.omnigraph.{Client, Workers}
import org.apache.spark.sql.types.{DataType, StringType, StructField, StructType}
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch}

/** What a query wants of a source: columns, tests that its rows have to pass, and how many rows of
  * each part are enough.
  */
case class Wanted(schema: StructType, tests: Seq[Test], limit: Option[Int]) {

  /** A batch without any column has no number of rows: the smallest column of all tells it. */
  def asked(whole: => StructType): StructType =
    if (schema.nonEmpty) schema else StructType(whole.sortBy(_.dataType.defaultSize).take(1))

  def json: String = {
    val tests = this.tests.map(_.json).mkString("[", ",", "]")
    s"""{"tests": $tests, "limit": ${limit.fold("null")(_.toString)}}"""
  }
}

/** Equal if the same rows are read. */
case class GraphBatch(identity: String, wanted: Wanted)(reads: PlannedReads, info: Planned)
    extends Batch {
  override def planInputPartitions(): Array[InputPartition] =
    info.read.partitions.zipWithIndex.map { case (partition, index) =>
      PythonInputPartition(index, partition)
    }.toArray

  override def createReaderFactory(): PartitionReaderFactory = {
    val client = Client.of(SparkSession.getActiveSession.orNull)
    new ColumnarReaderFactory(reads.source, info.read.func, info.asked, wanted.schema, client)
  }
}

/** What Python has planned of one source. Spark remembers one plan for a source, whatever was asked of
  * it, so that one is not taken.
  */
class PlannedReads(val source: UserDefinedPythonDataSource, made: PythonDataSourceCreationResult) {
  private val planned = mutable.Map.empty[Wanted, Planned]

  def info(wanted: Wanted, whole: => StructType = made.schema): Planned = synchronized {
    val asked = wanted.asked(whole)
    planned.getOrElseUpdate(
      wanted.copy(schema = asked),
      Planning.run(source.createPythonFunction(made.dataSource), asked, wanted.json)
    )
  }
}

object PlannedReads {

  /** As long as there is a DataFrame of the source: values hold nothing of their keys. */
  private val known = new WeakHashMap[PythonDataSourceV2, PlannedReads]

  def of(origin: Origin): PlannedReads = synchronized {
    known.computeIfAbsent(origin.source, _ => new PlannedReads(origin.userDefined, origin.made))
  }
}

class ColumnarReaderFactory(
    source: UserDefinedPythonDataSource,
    read: Array[Byte],
    asked: StructType,
    schema: StructType,
    client: Client
) extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("Batches only.")

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    new ColumnarReader(
      source,
      read,
      asked,
      schema,
      client,
      partition.asInstanceOf[PythonInputPartition]
    )
}

/** A task: a worker in Python that reads one partition. Its batches are columns of one struct. Each
  * is given back when the next one is asked for; the last one may be read after the task has ended.
  * What was asked for has at least the columns of the schema.
  */
class ColumnarReader(
    source: UserDefinedPythonDataSource,
    read: Array[Byte],
    asked: StructType,
    schema: StructType,
    client: Client,
    partition: PythonInputPartition
) extends PartitionReader[ColumnarBatch] {
  private val metrics = PythonCustomMetric.pythonMetrics
  private val batches = {
    val function = source.createPythonFunction(read)
    val input = UserDefinedPythonDataSource.readInputSchema
    val worker = Workers.mapping(function, input, metrics, client)
    val row = InternalRow(InternalRow(partition.pickedPartition))
    worker.compute(Iterator(Iterator(row)), partition.index, TaskContext.get())
  }

  private var latest: Option[ArrowColumns] = None
  private val plain = StructType(asked.map(withoutCollation))

  override def next(): Boolean = {
    latest.foreach(_.release())
    latest = None
    batches.hasNext
  }

  override def get(): ColumnarBatch = {
    val batch = batches.next()
    val struct = batch.column(0).asInstanceOf[ArrowColumnVector]
    if (!DataType.equalsIgnoreCompatibleNullability(struct.dataType(), plain))
      throw new IllegalStateException(
        s"A batch of ${struct.dataType().simpleString} came for ${asked.simpleString}."
      )
    val own = new ArrowColumns(
      schema.indices.map(index => struct.getChild(index).asInstanceOf[ArrowColumnVector])
    )
    latest = Some(own)
    new ColumnarBatch(own.columns, batch.numRows())
  }

  /** How texts are compared is not seen in their bytes. */
  private def withoutCollation(field: StructField): StructField = field.dataType match {
    case _: StringType => field.copy(dataType = StringType)
    case _ => field
  }

  override def currentMetricsValues(): Array[CustomTaskMetric] =
    source.createPythonTaskMetrics(metrics.map { case (name, metric) => name -> metric.value })

  /** Called when the task ends, which need not be the end of reading. */
  override def close(): Unit = ()
}
