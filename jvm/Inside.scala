// What Spark 4.3 keeps to itself, and we need: the only place that reaches for it.

package org.apache.spark.sql.execution.python.omnigraph {
  import org.apache.spark.JobArtifactSet
  import org.apache.spark.api.python.{ChainedPythonFunctions, PythonEvalType, PythonFunction}
  import org.apache.spark.sql.classic.SparkSession
  import org.apache.spark.sql.execution.metric.SQLMetric
  import org.apache.spark.sql.execution.python.{ArrowPythonRunner, BatchedPythonArrowInput}
  import org.apache.spark.sql.internal.SQLConf
  import org.apache.spark.sql.types.{StructField, StructType}

  /** For whom a worker works: whose files it finds, who asked for what it logs, and with which
    * settings. Known where a plan is made.
    */
  case class Client(
      artifacts: Option[String],
      logging: Option[String],
      zone: String,
      large: Boolean,
      settings: Map[String, String]
  )

  object Client {
    def of(session: SparkSession): Client = {
      val conf = SQLConf.get
      Client(
        JobArtifactSet.getCurrentJobArtifactState.map(_.uuid),
        Option(session).filter(_ => conf.pythonWorkerLoggingEnabled).map(_.sessionUUID),
        conf.sessionLocalTimeZone,
        conf.arrowUseLargeVarTypes,
        ArrowPythonRunner.getPythonRunnerConfMap(conf)
      )
    }
  }

  object Workers {

    /** A worker in Python that makes batches of batches. If it is not `sized`, a batch ends where an
      * iterator of rows does, or with Spark's greatest number of rows.
      */
    def mapping(
        function: PythonFunction,
        input: StructType,
        metrics: Map[String, SQLMetric],
        client: Client,
        sized: Boolean = true
    ): ArrowPythonRunner =
      new ArrowPythonRunner(
        Seq((ChainedPythonFunctions(Seq(function)), 0L)),
        PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
        Array(Array(0)),
        StructType(Array(StructField("struct", input))),
        client.zone,
        client.large,
        client.settings,
        metrics,
        client.artifacts,
        client.logging
      ) with BatchedPythonArrowInput {
        override protected val maxBytesPerBatch: Long =
          if (sized) SQLConf.get.arrowMaxBytesPerBatch
          else Int.MaxValue.toLong // which is not looked at
      }
  }
}

package org.apache.spark.sql.execution.datasources.v2.python.omnigraph {
  import java.io.{DataInputStream, DataOutputStream}

  import net.razorvine.pickle.Pickler

  import org.json4s.{DefaultFormats, Formats}
  import org.json4s.jackson.JsonMethods

  import org.apache.spark.api.python.{PythonFunction, PythonWorkerUtils}
  import org.apache.spark.sql.execution.datasources.v2.python._
  import org.apache.spark.sql.execution.python.PythonPlannerRunner
  import org.apache.spark.sql.internal.SQLConf
  import org.apache.spark.sql.types.StructType
  import org.apache.spark.sql.util.CaseInsensitiveStringMap

  /** What a table in Python was made from. */
  class Origin(table: PythonTable, options: CaseInsensitiveStringMap) {
    val source: PythonDataSourceV2 = field("ds")
    val schema: StructType = field("outputSchema")

    def userDefined: UserDefinedPythonDataSource = source.source

    /** Made when its schema was asked for, or now. */
    def made: PythonDataSourceCreationResult =
      source.getOrCreateDataSourceInPython(field("shortName"), options, Some(schema))

    private def field[T](name: String): T = {
      val found = classOf[PythonTable].getDeclaredField(name)
      found.setAccessible(true)
      found.get(table).asInstanceOf[T]
    }
  }

  /** How a source is read, of these columns, and what Python tells of it: the number of rows in all, their
    * bytes, and a text that two sources share if they read the same rows.
    */
  case class Planned(
      read: PythonDataSourceReadInfo,
      asked: StructType,
      rows: Long,
      bytes: Long,
      identity: String
  )

  object Planning {
    def run(source: PythonFunction, asked: StructType, request: String): Planned =
      new Planning(source, asked, request).runInPython()
  }

  /** Asks `spark/planner.py`, by a module that Spark is willing to start. */
  class Planning(source: PythonFunction, asked: StructType, request: String)
      extends PythonPlannerRunner[Planned](source) {
    override val workerModule: String = "pyspark_omnigraph.planner"

    override protected def writeToPython(out: DataOutputStream, pickler: Pickler): Unit = {
      PythonWorkerUtils.writePythonFunction(source, out)
      PythonWorkerUtils.writeUTF(asked.json, out)
      PythonWorkerUtils.writeUTF(request, out)
      out.writeInt(SQLConf.get.arrowMaxRecordsPerBatch)
      out.writeBoolean(SQLConf.get.pysparkBinaryAsBytes)
    }

    override protected def receiveFromPython(in: DataInputStream): Planned = {
      val read = PythonDataSourceReadInfo.receive(in)
      val told = JsonMethods.parse(PythonWorkerUtils.readUTF(in))
      implicit val formats: Formats = DefaultFormats
      Planned(
        read,
        asked,
        (told \ "rows").extract[Long],
        (told \ "bytes").extract[Long],
        (told \ "identity").extract[String]
      )
    }
  }
}
