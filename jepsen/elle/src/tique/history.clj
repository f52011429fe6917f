(ns tique.history
  "Reads a history from a file, in the shape in which Elle can take it."
  (:refer-clojure :exclude [read])
  (:require [clojure.edn :as edn]
            [clojure.java.io :as io]
            [clojure.string :as str])
  (:import (java.io PushbackReader)
           (java.util.zip GZIPInputStream)))

(defn- reader
  "Opens a file, compressed or not."
  [path]
  (let [stream (io/input-stream path)]
    (-> (if (str/ends-with? path ".gz") (GZIPInputStream. stream) stream)
        (io/reader :encoding "UTF-8")
        PushbackReader.)))

(defn- forms
  "Returns everything in a file."
  [path]
  (with-open [in (reader path)]
    (let [options {:eof ::end, :readers {'jepsen.history.Op identity}}]
      (->> (repeatedly #(edn/read options in))
           (take-while #(not= ::end %))
           (into [])))))

(defn- open-invocations
  "Returns the invocations that nothing completes, in their order."
  [operations]
  (->> operations
       (reduce (fn [by-process {:keys [process type] :as operation}]
                 (if (= :invoke type)
                   (assoc by-process process operation)
                   (dissoc by-process process)))
               {})
       vals
       (sort-by :index)))

(defn- close
  "Completes open invocations with :info: a client that was killed says nothing, and
  Elle knows nothing of a write without a completion."
  [operations]
  (into operations
        (map #(assoc % :type :info :error "never completed"))
        (open-invocations operations)))

(defn- dense
  "Numbers the operations 0, 1, 2, ...: Elle 0.2.7 deadlocks on a machine with two
  cores over a history whose indices have gaps."
  [operations]
  (into [] (map-indexed #(assoc %2 :index %1)) operations))

(defn read
  "Returns the clients' operations of a file: one per line or all in one vector."
  [path]
  (->> (forms path)
       (mapcat #(if (map? %) [%] %))
       (filterv (comp integer? :process))
       close
       dense))
