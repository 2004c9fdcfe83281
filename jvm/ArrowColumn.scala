package org.apache.spark.sql.omnigraph

import java.lang.ref.Cleaner

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector._

import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** The columns of a batch over memory that is its own. Spark asks a vector of Arrow's own for each
  * value by way of its checks, which costs more than what is done with the value; here the most
  * common types are read where they lie. Spark asks for no row that the batch does not have.
  *
  * Whoever takes the columns gives the memory back, by `release`, or by forgetting all of them: a task
  * may be over while a thread of its own, as that of a script, still reads its last batch. To Spark
  * these are no Arrow vectors: those it keeps while it asks for more.
  */
final class ArrowColumns(lent: Seq[ArrowColumnVector]) {
  private[this] val own = new OwnVectors(lent.map { column =>
    val pair = column.getValueVector.getTransferPair(ArrowColumns.allocator)
    pair.transfer()
    pair.getTo
  })
  private[this] val kept = new Object
  private[this] val cleaning = ArrowColumns.cleaner.register(kept, own)

  val columns: Array[ColumnVector] =
    own.vectors.map(vector => ArrowColumns.column(new ArrowColumnVector(vector), kept)).toArray

  def release(): Unit = cleaning.clean()
}

private object ArrowColumns {
  val cleaner: Cleaner = Cleaner.create()
  val allocator: BufferAllocator =
    ArrowUtils.rootAllocator.newChildAllocator("omnigraph", 0, Long.MaxValue)

  def column(lent: ArrowColumnVector, kept: AnyRef): ColumnVector = lent.getValueVector match {
    case vector @ (_: VarCharVector | _: VarBinaryVector) =>
      new TextColumn(lent, kept, vector.asInstanceOf[BaseVariableWidthVector])
    case vector @ (_: BigIntVector | _: IntVector | _: SmallIntVector | _: TinyIntVector |
        _: Float8Vector | _: Float4Vector | _: DateDayVector | _: TimeStampMicroTZVector |
        _: TimeStampMicroVector) =>
      new FixedColumn(lent, kept, vector.asInstanceOf[BaseFixedWidthVector])
    case _ => new LentColumn(lent, kept)
  }
}

/** What is given back; it knows nothing of the columns, which are forgotten first. */
private final class OwnVectors(val vectors: Seq[ValueVector]) extends Runnable {
  override def run(): Unit = vectors.foreach(_.close())
}

private class LentColumn(lent: ArrowColumnVector, protected val kept: AnyRef)
    extends ColumnVector(lent.dataType()) {
  override def close(): Unit = ()
  override def closeIfFreeable(): Unit = ()
  override def hasNull: Boolean = lent.hasNull
  override def numNulls: Int = lent.numNulls
  override def isNullAt(row: Int): Boolean = lent.isNullAt(row)
  override def getBoolean(row: Int): Boolean = lent.getBoolean(row)
  override def getByte(row: Int): Byte = lent.getByte(row)
  override def getShort(row: Int): Short = lent.getShort(row)
  override def getInt(row: Int): Int = lent.getInt(row)
  override def getLong(row: Int): Long = lent.getLong(row)
  override def getFloat(row: Int): Float = lent.getFloat(row)
  override def getDouble(row: Int): Double = lent.getDouble(row)
  override def getArray(row: Int): ColumnarArray = lent.getArray(row)
  override def getMap(row: Int): ColumnarMap = lent.getMap(row)
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    lent.getDecimal(row, precision, scale)
  override def getUTF8String(row: Int): UTF8String = lent.getUTF8String(row)
  override def getBinary(row: Int): Array[Byte] = lent.getBinary(row)
  override def getChild(ordinal: Int): ColumnVector = lent.getChild(ordinal)
}

private abstract class ReadColumn(lent: ArrowColumnVector, kept: AnyRef, vector: FieldVector)
    extends LentColumn(lent, kept) {
  private[this] val nulls = vector.getNullCount > 0
  private[this] val validity = if (nulls) vector.getValidityBuffer.memoryAddress() else 0L

  final override def hasNull: Boolean = nulls

  final override def isNullAt(row: Int): Boolean =
    nulls && ((Platform.getByte(null, validity + (row >> 3)) >> (row & 7)) & 1) == 0
}

private final class TextColumn(
    lent: ArrowColumnVector,
    kept: AnyRef,
    vector: BaseVariableWidthVector
) extends ReadColumn(lent, kept, vector) {
  private[this] val offsets = vector.getOffsetBuffer.memoryAddress()
  private[this] val data = vector.getDataBuffer.memoryAddress()

  override def getUTF8String(row: Int): UTF8String =
    if (isNullAt(row)) null
    else {
      val start = Platform.getInt(null, offsets + 4L * row)
      val end = Platform.getInt(null, offsets + 4L * row + 4L)
      UTF8String.fromAddress(null, data + start, end - start)
    }
}

private final class FixedColumn(
    lent: ArrowColumnVector,
    kept: AnyRef,
    vector: BaseFixedWidthVector
) extends ReadColumn(lent, kept, vector) {
  private[this] val data = vector.getDataBuffer.memoryAddress()

  override def getByte(row: Int): Byte = Platform.getByte(null, data + row)
  override def getShort(row: Int): Short = Platform.getShort(null, data + 2L * row)
  override def getInt(row: Int): Int = Platform.getInt(null, data + 4L * row)
  override def getLong(row: Int): Long = Platform.getLong(null, data + 8L * row)
  override def getFloat(row: Int): Float = Platform.getFloat(null, data + 4L * row)
  override def getDouble(row: Int): Double = Platform.getDouble(null, data + 8L * row)
}
