package org.apache.spark.sql.omnigraph

import org.apache.arrow.vector._

import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Columns over the memory of an Arrow vector. Spark asks a vector of Arrow's own for each value by
  * way of its checks, which costs more than what is done with the value; here the most common types
  * are read where they lie. Spark asks for no row that the batch does not have.
  *
  * The memory is that of the next batch too. So nothing is lent back when Spark has done with a
  * batch, and these are no Arrow vectors to Spark: those it may keep while it asks for more.
  */
object ArrowColumn {
  def apply(lent: ArrowColumnVector): ColumnVector = lent.getValueVector match {
    case vector @ (_: VarCharVector | _: VarBinaryVector) =>
      new TextColumn(lent, vector.asInstanceOf[BaseVariableWidthVector])
    case vector @ (_: BigIntVector | _: IntVector | _: SmallIntVector | _: TinyIntVector |
        _: Float8Vector | _: Float4Vector | _: DateDayVector | _: TimeStampMicroTZVector |
        _: TimeStampMicroVector) =>
      new FixedColumn(lent, vector.asInstanceOf[BaseFixedWidthVector])
    case _ => new LentColumn(lent)
  }
}

private class LentColumn(lent: ArrowColumnVector) extends ColumnVector(lent.dataType()) {
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

private abstract class ReadColumn(lent: ArrowColumnVector, vector: FieldVector)
    extends LentColumn(lent) {
  private[this] val nulls = vector.getNullCount > 0
  private[this] val validity = if (nulls) vector.getValidityBuffer.memoryAddress() else 0L

  final override def hasNull: Boolean = nulls

  final override def isNullAt(row: Int): Boolean =
    nulls && ((Platform.getByte(null, validity + (row >> 3)) >> (row & 7)) & 1) == 0
}

private final class TextColumn(lent: ArrowColumnVector, vector: BaseVariableWidthVector)
    extends ReadColumn(lent, vector) {
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

private final class FixedColumn(lent: ArrowColumnVector, vector: BaseFixedWidthVector)
    extends ReadColumn(lent, vector) {
  private[this] val data = vector.getDataBuffer.memoryAddress()

  override def getByte(row: Int): Byte = Platform.getByte(null, data + row)
  override def getShort(row: Int): Short = Platform.getShort(null, data + 2L * row)
  override def getInt(row: Int): Int = Platform.getInt(null, data + 4L * row)
  override def getLong(row: Int): Long = Platform.getLong(null, data + 8L * row)
  override def getFloat(row: Int): Float = Platform.getFloat(null, data + 4L * row)
  override def getDouble(row: Int): Double = Platform.getDouble(null, data + 8L * row)
}
