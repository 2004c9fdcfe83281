package org.apache.spark.sql.omnigraph

import org.json4s.{JArray, JNull, JObject, JString, JValue}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types._

/** A condition of Spark as Python reads it (`spark/pushed.py`), and as `explain` shows it. */
case class Test(json: String, text: String)

/** Which conditions are pushed. They mean the same in the query language: null is neither true nor
  * false, NaN equals itself and is above all numbers, and texts are ordered by their code points.
  * A condition is pushed as a whole, or not at all.
  */
object Pushed {
  def test(predicate: Predicate, schema: StructType): Option[Test] =
    new Pushed(schema).told(predicate).map(held =>
      Test(JsonMethods.compact(held), predicate.toString))

  private val compared = Set("=", "<>", "<", "<=", ">", ">=", "<=>")
  private val texts = Map(
    "STARTS_WITH" -> "starts_with",
    "ENDS_WITH" -> "ends_with",
    "CONTAINS" -> "contains"
  )
  private val firstDay = -719162
  private val lastDay = 2932896
  private val dayMicros = 86400000000L
  private val longest = BigInt(2).pow(64)
}

private class Pushed(schema: StructType) {
  import Pushed._

  private val types = schema.fields.map(field => field.name -> field.dataType).toMap

  def told(expression: Expression): Option[JValue] = expression match {
    case predicate: Predicate => told(predicate.name(), predicate.children())
    case _ => None
  }

  private def told(name: String, operands: Array[Expression]): Option[JValue] =
    (name, operands.toSeq) match {
      case ("AND" | "OR", parts) =>
        all(parts.map(told)).map(held => node(name.toLowerCase, held: _*))
      case ("NOT", Seq(part)) => told(part).map(node("not", _))
      case ("IS_NULL", Seq(column)) => reference(column).map(held => node("null", held._1))
      case ("IS_NOT_NULL", Seq(column)) => reference(column).map(held => node("given", held._1))
      case (operator, Seq(left, right)) if compared(operator) =>
        comparison(operator, left, right)
      case ("IN", column +: values) if values.nonEmpty =>
        for {
          (held, kind) <- reference(column) if isOrdered(kind)
          items <- all(values.map(value(_, kind)))
        } yield node("in", held, JArray(items.toList))
      case (test, Seq(column, part)) if texts.contains(test) =>
        for {
          (held, kind) <- reference(column) if kind == StringType
          text <- value(part, kind) if text != JNull
        } yield node(texts(test), held, text)
      case _ => None
    }

  private def comparison(operator: String, left: Expression, right: Expression): Option[JValue] = {
    val kind = reference(left).orElse(reference(right)).map(_._2)
    for {
      kind <- kind if isOrdered(kind)
      one <- operand(left, kind)
      other <- operand(right, kind)
    } yield node(operator, one, other)
  }

  private def operand(expression: Expression, kind: DataType): Option[JValue] =
    expression match {
      case column: NamedReference => reference(column).filter(_._2 == kind).map(_._1)
      case _ => value(expression, kind).map(node("value", _))
    }

  /** A column that is read without cost; a blob is not. */
  private def reference(expression: Expression): Option[(JValue, DataType)] = expression match {
    case column: NamedReference if column.fieldNames().length == 1 =>
      val name = column.fieldNames().head
      types.get(name).filter(_ != BinaryType).map(kind => (node("column", JString(name)), kind))
    case _ => None
  }

  private def isOrdered(kind: DataType): Boolean = kind match {
    case StringType | BooleanType | IntegerType | LongType | FloatType | DoubleType | DateType |
        TimestampType =>
      true
    case decimal: DecimalType => decimal.scale == 0
    case _ => false
  }

  /** A value of the type of the column that the query language has, too: no half milliseconds, and no
    * years that it does not know.
    */
  private def value(expression: Expression, kind: DataType): Option[JValue] = expression match {
    case literal: Literal[_] if literal.value() == null => Some(JNull)
    case literal: Literal[_] if literal.dataType() == kind =>
      literal.value() match {
        case days: Int if kind == DateType =>
          Option.when(days >= firstDay && days <= lastDay)(JString(days.toString))
        case micros: Long if kind == TimestampType =>
          val known = micros >= firstDay * dayMicros && micros < (lastDay + 1) * dayMicros
          Option.when(known && micros % 1000 == 0)(JString((micros / 1000).toString))
        case decimal: Decimal =>
          val whole = BigInt(decimal.toJavaBigDecimal.toBigIntegerExact)
          Option.when(whole.abs < longest)(JString(whole.toString))
        case float: Float => Some(JString(float.toDouble.toString))
        case other => Some(JString(other.toString))
      }
    case _ => None
  }

  private def node(name: String, parts: JValue*): JValue = JObject(name -> (parts match {
    case Seq(one) => one
    case several => JArray(several.toList)
  }))

  private def all(parts: Seq[Option[JValue]]): Option[Seq[JValue]] =
    Option.when(parts.forall(_.isDefined))(parts.flatten)
}
